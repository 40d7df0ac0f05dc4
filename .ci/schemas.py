"""Write docs/schemas.json: a JSON schema of the output of each command with ``--json``, from the
types on docs/commands.md.

python .ci/schemas.py        from the root of the checkout

A type is written as on that page: ``{"name": str, "faces"?: [{...}, ...], "score": float | null}``;
``?`` after a name says that it may be missing, ``{str: float}`` any names, ``...`` at the end of an
object further ones, and ``any`` any value.
"""

import ast
import json
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PLAIN = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "null": "null"}
EVALUATION = '{"name": str, "settings": {...}, "rows": [{...}, ...], ...}'
ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}


def schema_of(text):
    """Return the schema of a type on the page."""
    text = re.sub(r'"\?\s*:', '?":', text).replace("{...}", "{str: any}").replace("[...]", "[any]")
    return _schema(
        ast.parse(re.sub(r",\s*\.\.\.\s*\}", ', "...": any}', text.strip()), mode="eval").body
    )


def _schema(node):
    if isinstance(node, ast.Name):
        return {} if node.id == "any" else {"type": PLAIN[node.id]}
    if isinstance(node, ast.Constant):
        return {"const": node.value}
    if isinstance(node, ast.BinOp):
        return {"anyOf": [_schema(node.left), _schema(node.right)]}
    if isinstance(node, ast.List):
        entries = [
            part
            for part in node.elts
            if not (isinstance(part, ast.Constant) and part.value is Ellipsis)
        ]
        if len(entries) == 1:
            return {"type": "array", "items": _schema(entries[0])}
        return {
            "type": "array",
            "prefixItems": [_schema(entry) for entry in entries],
            "minItems": len(entries),
            "items": False,
        }
    assert isinstance(node, ast.Dict), ast.dump(node)
    if isinstance(node.keys[0], ast.Name):
        return {"type": "object", "additionalProperties": _schema(node.values[0])}
    names = {key.value: _schema(value) for key, value in zip(node.keys, node.values, strict=True)}
    is_open = names.pop("...", None) is not None
    required = [name for name in names if not name.endswith("?")]
    named = {name.removesuffix("?"): schema for name, schema in names.items()}
    return {
        "type": "object",
        "properties": named,
        "required": required,
        "additionalProperties": is_open,
    }


def schemas():
    """Return the schema of each command on the page that has ``--json``; if it prints several
    objects, that of a line."""
    by_command = {}
    for name, section in re.findall(
        r"^#+ (annealed .*)\n((?:(?!^#).*\n)*)", (DOCS / "commands.md").read_text(), re.MULTILINE
    ):
        if "`--json`" in section:
            block = re.search(r"^With `--json`.*\n\n((?:    .*\n)+)", section, re.MULTILINE)
            by_command[name] = {"anyOf": [schema_of(block[1] if block else EVALUATION), ERROR]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": by_command}


if __name__ == "__main__":
    made = schemas()
    lines = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(schema)}" for name, schema in made["$defs"].items()
    )
    (DOCS / "schemas.json").write_text(
        f'{{"$schema": {json.dumps(made["$schema"])},\n "$defs": {{\n{lines}\n }}}}\n'
    )
