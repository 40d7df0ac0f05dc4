"""Commands ``annealed sensors``, for recognising activities in a home from binary sensors."""

from pathlib import Path
from typing import Annotated

import typer

from .. import common
from .. import sensors as homes
from ..console import (
    AsJson,
    command_of,
    load_model_of,
    log,
    new_app,
    print_error,
    print_json,
    print_table,
)

app = new_app(help="Recognise activities at home from binary sensors, minute by minute.")

Data = Annotated[
    Path,
    typer.Option(
        metavar="FOLDER",
        help="Folder of sensor data: NAME_events.csv or NAME-sensors.txt, and files of activities.",
    ),
]
HomeName = Annotated[
    str | None,
    typer.Option(
        "--home", metavar="NAME", help="Name of the home, if the folder contains several."
    ),
]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES", help="Comma-separated features of each sensor: on, start, history, last."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Suppress messages on stderr.")]


@command_of(app)
def train(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Model file to write.")],
    home: HomeName = None,
    sensors: Annotated[
        int | None,
        typer.Option(
            "-k", "--sensors", metavar="N", help="Number of sensors to select (default: all)."
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="NAME", help="Selection method: annealed, foba or forward.")
    ] = "annealed",
    features: Features = None,
    quiet: Quiet = False,
) -> None:
    """Train a model of the activities in a home, based on all or some of its sensors.

    \b
    Examples:
      annealed sensors train --data homes --out home.safetensors -k 5
      annealed sensors train --data homes --out home.safetensors --home A --method foba
    """
    kinds = _kinds(features)
    common.check_outputs([data], model=out)
    data_of_home = homes.read_home(data, home)
    _print_notes(data_of_home.notes, quiet)
    model = homes.train_model(data_of_home, sensors, kinds, method)
    model.save(out)
    log(
        f"{out}: trained to recognise {len(model.activities)} activities from "
        f"{len(model.sensors)} sensors: {', '.join(model.sensors)}",
        quiet,
    )


@command_of(app)
def predict(
    data: Data,
    model: Annotated[
        Path, typer.Option(metavar="FILE", help="Model file of annealed sensors train.")
    ],
    home: HomeName = None,
    day: Annotated[
        str | None,
        typer.Option(
            metavar="DATE", help="Day to predict, such as 2011-11-29 (default: all days)."
        ),
    ] = None,
    overlay: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Image to write with the activities of the day (requires --day)."
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Predict the inhabitant's activities with their start and end times.

    \b
    Examples:
      annealed sensors predict --data homes --model home.safetensors --json
      annealed sensors predict --data homes --model home.safetensors --day 2011-11-29
    """
    import numpy as np

    if overlay is not None and day is None:
        raise ValueError("--overlay requires --day")
    common.check_outputs([data, model], [overlay])
    trained = load_model_of("activity model", str(model))
    data_of_home = homes.read_home(data, home, labelled=False)
    _print_notes(data_of_home.notes, quiet)
    minutes = data_of_home.minutes
    probability = trained.predict_proba(minutes)
    codes, days = probability.argmax(axis=1), minutes.days
    if day is not None and day not in days:
        raise ValueError(
            f"--day {day}: the data do not contain this day; expected a day from {days[0]} to "
            f"{days[-1]}"
        )
    rows = np.flatnonzero(days == day) if day is not None else np.arange(len(days))
    changes = (codes[rows][1:] != codes[rows][:-1]) | (days[rows][1:] != days[rows][:-1])
    spans = []
    for part in np.split(rows, np.flatnonzero(changes) + 1):
        code = codes[part[0]]
        span = {
            "home": data_of_home.name,
            "start": str(minutes.times[part[0]]).replace("T", " "),
            "end": str(minutes.times[part[-1]] + np.timedelta64(1, "m")).replace("T", " "),
            "activity": trained.activities[code],
            "probability": float(probability[part, code].mean()),
        }
        spans.append(span)
    if overlay is not None:
        names = np.array(trained.activities)
        homes.draw_day(
            overlay,
            minutes.times[rows],
            {"predicted": names[codes[rows]]},
            f"{data_of_home.name}, {day}",
        )
    if as_json:
        for span in spans:
            print_json(span)
    else:
        print_table(
            data_of_home.name,
            ["start", "end", "activity", "probability"],
            [list(span.values())[1:] for span in spans],
        )


@command_of(app)
def evaluate(
    data: Data,
    home: HomeName = None,
    features: Features = None,
    folds: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Number of folds of whole days (default: one fold per day)."
        ),
    ] = None,
    sensors: Annotated[
        int | None,
        typer.Option(
            "-k",
            "--sensors",
            metavar="N",
            help="Also evaluate selections of 1 to N sensors (five folds).",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            metavar="NAME",
            help="Selection method for -k, such as FoBa or L1; repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder for a report with tables and images."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Resume an interrupted run with the same report folder."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate the model and its baselines on held-out days.

    The baselines are the majority class, logistic regression and a hidden Markov model. With -k,
    models with few sensors are evaluated as well.

    \b
    Examples:
      annealed sensors evaluate --data homes
      annealed sensors evaluate --data homes -k 8 --method FoBa --report report
    """
    from joblib import hash as content_hash

    if resume and report is None:
        raise ValueError("--resume requires --report with the folder of the interrupted run")
    common.check_names("method", method, homes.METHODS)
    kinds = _kinds(features) or (homes.FULL_KINDS if sensors is None else homes.SELECTION_KINDS)
    if sensors is not None:
        homes.check_selection_kinds(kinds)
    common.check_outputs([data], report=report, report_files=homes.REPORT_FILES)
    data_of_home = homes.read_home(data, home)
    _print_notes(data_of_home.notes, quiet)
    minutes = data_of_home.minutes
    if sensors is not None and not 1 <= sensors <= len(minutes.sensors):
        raise ValueError(
            f"--sensors {sensors} is not valid; expected an integer from 1 to "
            f"{len(minutes.sensors)}, the number of sensors of {data_of_home.name}"
        )
    common.make_folder(report)
    made_from = {
        "work": "sensors evaluate",
        "home": data_of_home.name,
        "folds": folds,
        "data": content_hash(minutes),
    }
    cells = common.Checkpoint(report and report / ".annealed-finished", made_from, resume=resume)
    baselines = homes.evaluate_baselines(minutes, kinds, folds, cells)
    selections = (
        []
        if sensors is None
        else homes.evaluate_selection(
            minutes, kinds, range(1, sensors + 1), method, folds or 5, cells
        )
    )
    n_days = len(set(minutes.days.tolist()))
    rows = homes.table_rows(minutes, [*baselines, *selections])
    record = {
        "name": "sensors evaluate",
        "settings": {
            "home": data_of_home.name,
            "days": n_days,
            "features": list(kinds),
            "folds": folds or n_days,
        },
        "rows": rows,
    }
    if report is not None:
        homes.write_report(report, record, minutes, baselines, selections)
    if as_json:
        print_json(record)
    else:
        homes.print_results(data_of_home.name, rows)


def _kinds(features: str | None) -> tuple[str, ...] | None:
    from ...models.sensors.features import check_kinds

    kinds = None if features is None else tuple(part.strip() for part in features.split(","))
    if kinds is not None:
        check_kinds(kinds)
    return kinds


def _print_notes(notes: tuple[str, ...], quiet: bool) -> None:
    for note in notes if not quiet else ():
        print_error(note)
