"""Commands ``annealed motion``, for the segmentation of point tracks and videos."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from .. import common, console, motion
from ..console import AsJson, Dask, Model, Quiet, command_of, new_app

app = new_app(help="Segment point tracks and videos into rigid motions.")

Data = Annotated[
    Path,
    typer.Option(
        metavar="FOLDER", help="Folder of Hopkins155, or of .npz files with tracks and labels."
    ),
]


@command_of(app)
def segment(
    context: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Files of tracks (.npz, .csv, _truth.mat) or videos."),
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Use a sample video.")] = False,
    motions: Annotated[
        str, typer.Option(metavar="N", help="Number of motions, or auto to choose between 2 and 5.")
    ] = "auto",
    model: Model = "motion",
    overlay: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Video to write with coloured tracks (for a single FILE)."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File of labelled tracks to write: .npz, .csv or .parquet (for a single FILE).",
        ),
    ] = None,
    tracks: Annotated[Path | None, typer.Option(hidden=True)] = None,
    masks: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder for masks of moving objects, with the file names that COLMAP expects.",
        ),
    ] = None,
    outliers: Annotated[
        bool, typer.Option("--outliers", help="Label points that do not fit any motion as -1.")
    ] = False,
    jobs: Annotated[
        int, typer.Option(metavar="N", help="Number of parallel processes (0: one per core).")
    ] = 1,
    dask: Dask = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Label each track with its rigid motion.

    \b
    Examples:
      annealed motion segment --sample --motions 3 --overlay motions.avi
      annealed motion segment walk.mp4 --out tracks.csv --masks masks --overlay coloured.mp4
    """
    from ...vision.tracks.io import check_tracks_name

    if tracks is not None:
        out = console.renamed(tracks, "--tracks", out, "--out")
    if sample == bool(files):
        raise ValueError("expected either FILES of tracks or videos, or --sample")
    if not files:
        files = [console.temporary_file(context, common.VIDEO)]
        common.write_sample(files[0])
    if str(files[0]).startswith("camera") and not files[0].exists():
        raise ValueError(
            f"{' '.join(map(str, files))}: cameras are not supported; "
            "expected files of tracks or videos"
        )
    for option, path in (("overlay", overlay), ("out", out), ("masks", masks)):
        if path is not None and len(files) > 1:
            raise ValueError(f"--{option} accepts a single FILE, not {len(files)}")
        if path is not None and dask is not None:
            raise ValueError(
                f"--{option} {path} is not available with --dask; use only one of them"
            )
    if out is not None:
        check_tracks_name(out)
    if overlay is not None:
        common.check_video_name(overlay)
    common.check_outputs([*files, model], [overlay, out])
    common.make_folder(masks)
    number = console.number_or_auto("--motions", motions)
    ranker = console.load_model_of("segmentation ranker", model)
    file_map = common.make_file_map(jobs, dask, len(files), quiet)
    segmented = partial(
        motion.segment_file,
        n_motions=number,
        overlay=overlay,
        outliers=outliers,
        tracks_out=out,
        masks=masks,
    )
    work = partial(common.try_file, segmented, plain=len(files) <= motion.MAX_FEW)
    failed = 0
    for path, (answer, error) in zip(
        files, console.progress(file_map(work, ranker, files), quiet, "files", len(files))
    ):
        if error is not None:
            console.print_error(error)
            failed += 1
        if as_json:
            console.print_json(
                {"sequence": path.stem, "error": error} if error is not None else answer.record()
            )
        elif error is None:
            rows = [list(candidate.values()) for candidate in answer.record()["candidates"]]
            console.print_table(answer.describe(), ["family", "dimension", "score"], rows)
    console.end(len(files), failed)


@command_of(app)
def train(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Model file to write.")],
    min_motion_size: Annotated[
        int, typer.Option(metavar="N", help="Minimum number of points in a motion.")
    ] = 0,
    synthetic: Annotated[
        int,
        typer.Option(
            metavar="N", help="Number of additional synthetic perspective sequences (at most 80)."
        ),
    ] = 80,
    driving: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Number of additional synthetic driving scenes of each of six kinds.",
        ),
    ] = 24,
    quiet: Quiet = False,
) -> None:
    """Train a ranker on labelled sequences.

    \b
    Examples:
      annealed motion train --data sequences --out mine.safetensors
      annealed motion train --data sequences --out mine.safetensors --synthetic 0 --driving 0
    """
    from ...vision.tracks.io import read_sequences

    common.check_integer("--min-motion-size", min_motion_size, 0)
    common.check_integer("--synthetic", synthetic, 0, len(motion.TRAINING_SEEDS))
    common.check_integer("--driving", driving, 0)
    common.check_outputs([data], model=out)
    sequences = read_sequences(data)
    n = len(sequences) + synthetic + driving * len(motion.TRAINING_KINDS)
    ranker = motion.train_ranker(
        sequences,
        min_motion_size,
        synthetic,
        driving,
        lambda it: console.progress(it, quiet, "sequences", n),
    )
    ranker.save(out)
    console.log(
        f"{out}: trained on {len(sequences)} sequences; {len(ranker.selected_names())} features "
        "selected",
        quiet,
    )


@command_of(app)
def evaluate(
    data: Data,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Method: fsa, rankboost, lambdarank, ridge, rule, fit or oracle; repeatable.",
        ),
    ] = None,
    partitions: Annotated[
        int,
        typer.Option(metavar="N", help="Number of random partitions of the videos into ten folds."),
    ] = 10,
    pool: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=(
                "Candidates: all (from subspaces and frame pairs), or those of the paper (paper or "
                "trajectories)."
            ),
        ),
    ] = "all",
    choose: Annotated[
        bool,
        typer.Option("--choose", help="Also tune the settings within the training folds (slow)."),
    ] = False,
    auto: Annotated[bool, typer.Option("--auto", help="Also evaluate --motions auto.")] = False,
    as_json: AsJson = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder for a report with a table, curves and images."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Resume an interrupted run with the same report folder."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate methods by ten-fold cross-validation over videos, in the layout of Table VII of
    Barbu et al. (2017).

    \b
    Examples:
      annealed motion evaluate --data sequences --report report
      annealed motion evaluate --data sequences --method fsa --method oracle --pool paper
    """
    import numpy as np

    from ...vision.tracks.io import read_sequences

    common.check_integer("--partitions", partitions, 1)
    common.check_names("--pool", [pool], motion.POOLS)
    if resume and report is None:
        raise ValueError("--resume requires --report with the folder of the interrupted run")
    common.check_outputs([data], report=report, report_files=motion.REPORT_FILES)
    methods = method or [m for m in motion.METHODS if m != "lambdarank" or motion.has_lightgbm()]
    motion.check_methods(methods)
    sequences = read_sequences(data)
    # Missing labels and too few videos are reported before the long computation.
    for sequence in sequences:
        _ = sequence.n_motions
    motion.evaluate.folds(np.array([s.video for s in sequences]), 0)
    common.make_folder(report)
    cells = common.Checkpoint(
        report and report / ".annealed-finished",
        motion.evaluate.made_from(sequences, pool),
        resume=resume,
    )
    steps = iter(
        console.progress(range(len(sequences)), quiet, "candidates and features", len(sequences))
    )
    benchmark = motion.prepare(
        sequences, *motion.POOLS[pool], on_sequence=lambda: next(steps, None)
    )
    console.log(
        f"candidates and features: {benchmark.seconds.sum():.1f} s for {len(sequences)} sequences",
        quiet,
    )

    results = motion.evaluate.evaluate(
        benchmark,
        methods,
        partitions,
        choose,
        lambda steps, n: console.progress(steps, quiet, "partitions", n),
        cells,
    )
    record = motion.record_of(data, benchmark, results, partitions)
    if auto:
        console.log("number of motions: candidates for 2 to 5", quiet)
        ranker = motion.shipped_settings()
        record["settings"]["auto"] = motion.evaluate.evaluate_auto(
            sequences, ranker, partitions, motion.shipped_columns(ranker.features)
        )
    if report is not None:
        motion.write_report(report, record, benchmark, results, sequences)
    if as_json:
        console.print_json(record)
    else:
        motion.print_results(record["rows"])
        if auto:
            console.print_table(
                "--motions auto", ["", "value"], list(record["settings"]["auto"].items())
            )
