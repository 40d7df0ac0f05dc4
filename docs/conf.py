"""The documentation site: ``make docs`` builds it into build/site, without the network.

The source folder is the root of the checkout, so that the links of the pages hold on a code host
and on the site alike. What a
code host would show as noise is added here: tables of contents, and the directives of the
reference.
"""

import importlib
import os
import re
import sys
import warnings
from pathlib import Path

import annealed

os.environ["ANNEALED_QUIET"] = "1"  # no message on compilation in the output of examples
sys.path.insert(0, str(Path(__file__).parent))
from site_map import NAVIGATION, SHORT

ESCAPED = re.compile(r"`+[^`]+`+|(?<![\w*])(\w+)_(?=[,).:'\s]|$)|\|")
PARENT_PAGE = re.compile(r"\]\(((?:\.\./)+[\w./-]+)\.md\)")
ENDS = re.compile(r"(```python\n(?:(?!```).*\n)*?.*\S.*)\n\n```\n")
PACKAGES = ("annealed.learners", "annealed.vision", "annealed.models")

project = "annealed"
author = copyright = "The annealed developers"
version = release = annealed.__version__

extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_parser", "sphinx_gallery.gen_gallery"]
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "models/weights/*.md",
    "experiments/README.md",
    "experiments/pages/*",
    "experiments/notebook/*",
    "CHANGELOG.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
]
exclude_patterns = [".venv", "build", "paper", ".github", "docs/_static", "docs/site_root"]
exclude_patterns += ["docs/gallery/GALLERY_HEADER.rst", "docs/gallery/**.ipynb"]
myst_heading_anchors = 4

autodoc_default_options = {"members": True, "inherited-members": True}
autodoc_typehints = "none"  # numpydoc says types
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "annealed"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["site_root"]  # index.html, which leads to docs/index.html
html_show_sourcelink = False
html_copy_source = False
toc_object_entries_show_parents = "hide"
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"docs/index": [], "docs/gallery/index": []}

sphinx_gallery_conf = {
    "examples_dirs": "examples/gallery",
    "gallery_dirs": "docs/gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 5,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "backreferences_dir": None,
    "write_computation_times": False,
    "default_thumb_file": None,
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")


def add_contents(app, docname, source) -> None:
    """Append the tables of contents of the map to a page, and make links of the tables of public
    names.

    The blank line that ends a tested example is for the reader of the source only. Markdown that is
    no page of the site, such as the README, can be downloaded, as other files are.
    """

    def link(match: re.Match) -> str:
        is_page = os.path.normpath(f"{docname}/../{match[1]}") in app.env.found_docs
        return match[0] if is_page else f"](path:{match[1]}.md)"

    source[0] = PARENT_PAGE.sub(link, ENDS.sub(r"\1\n```\n", source[0]))
    fence = "```{{toctree}}\n:hidden:\n{caption}\n{pages}\n```\n"
    for caption, pages in NAVIGATION.get(docname, {}).items():
        listed = "\n".join(
            f"{SHORT[page]} </{page}>" if page in SHORT else f"/{page}" for page in pages
        )
        source[0] += "\n" + fence.format(
            caption=f":caption: {caption}\n" if caption else "", pages=listed
        )
    if docname == "docs/api":
        source[0] = re.sub(r"^## (annealed\.\w+)\n(?:(?!## ).*\n?)*", _names, source[0], flags=re.M)


def _public(package: str) -> list[str]:
    return sorted(importlib.import_module(package).__all__, key=str.lower)


def write_name_pages(app) -> None:
    """One page per public name, for autodoc to fill."""
    folder = Path(app.srcdir) / "docs" / "reference"
    folder.mkdir(exist_ok=True)
    for package in PACKAGES:
        for name in _public(package):
            kind = (
                "class"
                if isinstance(getattr(importlib.import_module(package), name), type)
                else "function"
            )
            text = f"{name}\n{'=' * len(name)}\n\n.. currentmodule:: {package}\n\n.. auto{kind}:: {name}\n"
            page = folder / f"{package}.{name}.rst"
            if not page.exists() or page.read_text() != text:
                page.write_text(text)


def _names(section: re.Match) -> str:
    """The tables of a package with its names as links, and their pages in the navigation."""
    package = section[1]
    rows = re.sub(r"^\| `(\w+)` \|", rf"| {{py:obj}}`\1 <{package}.\1>` |", section[0], flags=re.M)
    listed = "\n".join(f"reference/{package}.{name}" for name in _public(package))
    return f"{rows}\n```{{toctree}}\n:hidden:\n:caption: {package}\n{listed}\n```\n"


def leave_out_foreign_members(app, what, name, thing, skip, options) -> bool | None:
    """Methods that scikit-learn or Python bring are documented there."""
    home = (
        getattr(thing, "__module__", None)
        or getattr(getattr(thing, "fget", None), "__module__", None)
        or "annealed"
    )
    return True if not home.startswith("annealed") else None


def escape_names(app, what, name, thing, options, lines: list[str]) -> None:
    """In docstrings a name such as n_features_in_ is no link, and an absolute value such as abs(u)
    between bars no substitution."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = ESCAPED.sub(
                lambda m: m[0] if m[0][0] == "`" else rf"{m[1]}\_" if m[1] else r"\|", line
            )


def setup(app) -> None:
    """Connect them."""
    app.connect("autodoc-process-docstring", escape_names, priority=900)  # after numpydoc
    app.connect("builder-inited", write_name_pages)
    app.connect("source-read", add_contents)
    app.connect("autodoc-skip-member", leave_out_foreign_members)
