"""Check the links of a built site: each target file and anchor exists. ``python .ci/site_links.py
FOLDER``.

Links to other hosts are counted, not fetched. A page may not load resources from other hosts.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(sys.argv[1]).resolve()


class Page(HTMLParser):
    """Anchors of a page, its links, and what it loads."""

    def __init__(self, path: Path):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes_by_name = dict(attributes)
        self.anchors |= {
            attributes_by_name[key] for key in ("id", "name") if attributes_by_name.get(key)
        }
        if tag == "a" and attributes_by_name.get("href"):
            self.links.append(attributes_by_name["href"])
        elif tag in ("img", "script", "iframe", "source", "video") and attributes_by_name.get(
            "src"
        ):
            self.loaded.append(attributes_by_name["src"])
        elif (
            tag == "link"
            and attributes_by_name.get("href")
            and attributes_by_name.get("rel") in ("stylesheet", "preload", "icon")
        ):
            self.loaded.append(attributes_by_name["href"])


pages = {path: Page(path) for path in ROOT.rglob("*.html") if "_static" not in path.parts}
broken, outside = [], 0
for path, page in pages.items():
    for target in page.links + page.loaded:
        parts = urlsplit(target)
        if parts.scheme in ("http", "https", "mailto") or parts.netloc:
            outside += 1
            if target in page.loaded:
                broken.append(f"{path.relative_to(ROOT)} loads {target}")
            continue
        if parts.scheme:  # data:, javascript:
            continue
        linked = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        anchor = unquote(parts.fragment)
        if not linked.exists() or (
            anchor and linked in pages and anchor not in pages[linked].anchors
        ):
            broken.append(f"{path.relative_to(ROOT)} -> {target}")
n_links = sum(len(page.links) for page in pages.values())
print(
    f"{len(pages)} pages, {n_links} links, {outside} of them to other hosts; {len(broken)} broken"
)
for line in broken[:40]:
    print(line)
sys.exit(bool(broken))
