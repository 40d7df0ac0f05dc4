"""Commands ``annealed pets``, for the classification of photographs by visual words."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ... import models
from .. import common, console, pets
from ..console import AsJson, Dask, Model, Quiet, command_of, new_app

app = new_app(help="Classify photographs, such as those of cats and dogs, with visual evidence.")

Data = Annotated[
    Path,
    typer.Option(
        metavar="FOLDER",
        help="Folder with subfolders per class, CLASS.N.jpg, labels.csv or Oxford-IIIT Pets.",
    ),
]


@command_of(app)
def train(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Model file to write.")],
    words: Annotated[
        int,
        typer.Option(
            metavar="N", help="Size of the vocabulary; use a smaller one for few photographs."
        ),
    ] = 5000,
    select: Annotated[int, typer.Option(metavar="N", help="Number of features to select.")] = 500,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Learner: fsa, piecewise, sdist (on the features of fsa), both, or sdist-sgd.",
        ),
    ] = "fsa",
    max_order: Annotated[
        int,
        typer.Option(
            metavar="N", help="Maximum order of feature products for sdist, both and sdist-sgd."
        ),
    ] = 1,
    jobs: Annotated[
        int, typer.Option(metavar="N", help="Number of parallel processes (0: one per core).")
    ] = 1,
    dask: Dask = None,
    quiet: Quiet = False,
) -> None:
    """Train a classifier on all photographs, or on the training split if the data have one.

    \b
    Examples:
      annealed pets train --data photographs --out mine.safetensors
      annealed pets train --data photographs --out mine.safetensors --words 1000 --method sdist
    """
    from ...models.images.classifier import HEADS
    from ...vision.words.estimators import PetFeatures

    settings = models.ClassifierSettings(
        method=method, n_features_to_select=select, max_order=max_order
    )
    common.check_integer("--words", words, 1)
    common.check_outputs([data], model=out)
    files = [f for f in pets.read_pets(data) if f.split != "test"]
    features = PetFeatures(words, heads=True, random_state=0)
    file_map = common.make_file_map(jobs, dask, len(files), quiet)
    files, errors = pets.usable(
        list(console.progress(files, quiet, "reading", len(files))), features.side, file_map
    )
    features.each = partial(common.map_items, file_map)
    for error in errors:
        console.print_error(error)
    classes = sorted({f.label for f in files})
    if len(classes) < 2:
        present = f"only one class ({classes[0]!r})" if classes else "no readable photographs"
        raise ValueError(f"{data}: the folder contains {present}; expected at least two classes")
    n_heads = sum(f.head is not None for f in files)
    features.heads = n_heads > 0
    console.log(f"{len(files)} photographs, {n_heads} with a head box: {', '.join(classes)}", quiet)
    if not n_heads:
        console.log("there are no head boxes, so head words are not used", quiet)
    model = models.ImageClassifier(features, settings).fit(
        pets.Photographs(files, features.side), [f.label for f in files]
    )
    if n_heads and HEADS not in model.scorers:
        console.log("a class has too few head boxes, so head words are not used", quiet)
    model.save(out)
    for part in model.scorers:
        facts = model.info[part]
        console.log(
            f"{part}: {facts['chosen']} of {facts['columns']} columns from "
            f"{facts['photographs']} photographs, "
            f"cross-validated error {facts['cross_validated_error']:.3f}",
            quiet,
        )
    console.end(len(files) + len(errors), len(errors))


@command_of(app)
def classify(
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE", help="Image files.")],
    model: Model = "pets",
    overlay: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Image to write with the evidence, or a folder for several images."
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(metavar="N", help="Number of parallel processes (0: one per core).")
    ] = 1,
    dask: Dask = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Classify photographs, and print the predicted class and its probability.

    \b
    Examples:
      annealed pets classify a.jpg b.jpg --json
      annealed pets classify a.jpg --overlay evidence.png
    """
    pictures = common.overlay_paths(images, overlay, "evidence") if overlay is not None else []
    classifier = console.load_model_of("image classifier", model)
    if overlay is not None and len(pictures) > 1:
        common.make_folder(overlay)
    common.check_outputs([*images, model], pictures)
    work = partial(common.try_file, partial(pets.classify_file, keep_photograph=bool(pictures)))
    results = common.make_file_map(jobs, dask, len(images), quiet)(work, classifier, images)
    failed = 0
    rows = []
    for i, (answer, error) in enumerate(console.progress(results, quiet, "images", len(images))):
        if error is None and pictures:
            evidence = [(images[i].name, classifier.explain(answer[1]))]
            error = common.try_file(
                lambda evidence, path: pets.draw_evidence(path, evidence), evidence, pictures[i]
            )[1]
        if error is not None:
            console.print_error(error)
            failed += 1
        if as_json:
            console.print_json(
                answer[0] if error is None else {"image": str(images[i]), "error": error}
            )
        if error is None:
            rows.append(list(answer[0].values()))
    if rows and not as_json:
        console.print_table("", ["image", "label", "probability"], rows)
    console.end(len(images), failed)


@command_of(app)
def evaluate(
    data: Data,
    model: Model = "pets",
    as_json: AsJson = False,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder for a report with a table and images of words and evidence.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Evaluate a model on the test split, or on all photographs if there is no split.

    \b
    Examples:
      annealed pets evaluate --data photographs
      annealed pets evaluate --data photographs --model mine.safetensors --report report
    """
    classifier = console.load_model_of("image classifier", model)
    common.check_outputs([data, model], report=report, report_files=pets.REPORT_FILES)
    files = pets.read_pets(data)
    files, errors = pets.usable(
        list(console.progress(files, quiet, "reading", len(files))), classifier.features.side
    )
    for error in errors:
        console.print_error(error)
    if not any(f.head is not None for f in files):
        console.log("there are no head boxes, so head words are not used", quiet)
    common.make_folder(report)
    result = pets.evaluate_classifier(
        classifier, files, lambda items, n: console.progress(items, quiet, "columns", n)
    )
    settings = {
        "data": str(data),
        "model": model,
        "train": len(result.train),
        "test": len(result.test),
        "seconds_per_photograph": result.seconds,
        "breeds": result.breeds,
    }
    record = {"name": "pets evaluate", "settings": settings, "rows": result.rows}
    if report is not None:
        pets.write_report(report, record, classifier, result)
    console.print_answer(record, as_json, "", pets.COLUMNS)
    console.end(len(files) + len(errors), len(errors))
