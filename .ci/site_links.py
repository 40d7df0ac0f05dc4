"""Links of a built site: each leads to a file of the site, and to an anchor that is there. ``python
.ci/site_links.py FOLDER``.

Links to other hosts are counted, not fetched. Nothing that a page loads by itself may come from
another host.
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
        found = dict(attributes)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        elif tag in ("img", "script", "iframe", "source", "video") and found.get("src"):
            self.loaded.append(found["src"])
        elif (
            tag == "link"
            and found.get("href")
            and found.get("rel") in ("stylesheet", "preload", "icon")
        ):
            self.loaded.append(found["href"])


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
        there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        anchor = unquote(parts.fragment)
        if not there.exists() or (anchor and there in pages and anchor not in pages[there].anchors):
            broken.append(f"{path.relative_to(ROOT)} -> {target}")
n_links = sum(len(page.links) for page in pages.values())
print(
    f"{len(pages)} pages, {n_links} links, {outside} of them to other hosts; {len(broken)} broken"
)
for line in broken[:40]:
    print(line)
sys.exit(bool(broken))
