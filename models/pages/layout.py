"""Layout and tables of a report page, which is a self-contained HTML file."""

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = """body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:960px;\
margin:2em auto;padding:0 1em}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em;border-bottom:1px solid #ddd}
table{border-collapse:collapse;margin:.6em 0}td,th{padding:.25em .8em;\
text-align:left;border-bottom:1px solid #eee}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.small{color:#555;font-size:.9em}
svg,img{max-width:100%;height:auto}.curves{display:flex;flex-wrap:wrap;gap:8px}.best{font-weight:600}
figure{margin:0}figcaption{color:#555;font-size:.9em}
@media print{body{margin:0;max-width:none}svg,img,figure,tr,details{break-inside:avoid}\
h2{break-after:avoid}}
@media(max-width:520px){table{display:block;overflow-x:auto;font-size:.88em}\
td,th{padding:.25em .4em}}"""


def html_page(title: str, heading: str, body: str) -> str:
    """Return an HTML page, given a title and heading in plain text and a body in HTML."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, '
        f'initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><h1>{escape(heading)}</h1>{body}</body></html>\n"
    )


def small(words: str) -> str:
    """Return a paragraph of HTML text in small print."""
    return f'<p class="small">{words}</p>'


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    bold: int | None = None,
    numbers: Sequence[int] | None = None,
) -> str:
    """Return an HTML table of strings.

    The columns with the indices ``numbers`` (by default, all except the first) are right-aligned.
    One row can be printed in bold.
    """

    def cells(kind: str, values: Sequence[str]) -> str:
        right = [i > 0 if numbers is None else i in numbers for i in range(len(values))]
        return "".join(
            f"<{kind}{' class=n' if r else ''}>{escape(str(v))}</{kind}>"
            for v, r in zip(values, right)
        )

    body = "".join(
        f"<tr{' class=best' if i == bold else ''}>{cells('td', row)}</tr>"
        for i, row in enumerate(rows)
    )
    return f"<table><tr>{cells('th', head)}</tr>{body}</table>"
