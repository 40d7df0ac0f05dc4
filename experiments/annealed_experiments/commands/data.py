"""Command ``annealed data``, which converts downloads of public data sets."""

from pathlib import Path
from typing import Annotated

import typer
from annealed.pipelines.console import AsJson, command_of, new_app, print_answer, print_json

app = new_app(help="Convert public data sets.")


@command_of(app)
def convert(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Name of a data set; see annealed data list."),
    ],
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Downloaded folder or file.")],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="Folder of data sets, for use with --data or ANNEALED_DATA."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Convert a downloaded public data set to the folder that the commands read.

    \b
    Examples:
      annealed data convert usps downloads data
      annealed data convert usps downloads data --json
    """
    from ..conversion.registry import DATA_SETS, convert

    folder, notes = convert(name, source, out)
    then = DATA_SETS[name].then.replace("DATA", str(out)).replace("NAME", folder.name)
    if as_json:
        print_json({"name": name, "folder": str(folder), "notes": notes, "then": then})
        return
    for line in (f"wrote {folder}", *notes, *([f"next: {then}"] if then else [])):
        typer.echo(line)


@command_of(app, "list")
def list_sets(as_json: AsJson = False) -> None:
    """List the data sets, their downloads and the commands that use them.

    \b
    Examples:
      annealed data list
      annealed data list --json
    """
    from ..conversion.registry import DATA_SETS

    rows = [
        {"name": key, "source": one.source.replace("NAME_", f"{key}_"), "then": one.then}
        for key, one in DATA_SETS.items()
    ]
    print_answer(rows, as_json, "", ["name", "source"])
