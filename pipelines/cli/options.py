"""Options that several commands have, and the models that they name."""

from typing import Annotated, Any

import typer

Model = Annotated[str, typer.Option(help="Name of a shipped model, or a model file.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON for programs instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]


def load_model_of(kind: str, name: str) -> Any:
    """Load a model of a kind in ``annealed.models.KINDS``: a shipped name, or a path."""
    from ...models import load_model, resolve_model
    from ...models.files import read_header

    path = resolve_model(name)
    if read_header(path)["kind"] != kind:
        raise ValueError(f"model {name!r}: not {'an' if kind[0] in 'aeiou' else 'a'} {kind}")
    return load_model(path)
