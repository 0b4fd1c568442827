"""How well a page's own text is told from its site's frame, on sites made by real generators, whose
templates say which element holds what is the page's own.

    python -m tests.benchmarks.owntext.sites FOLDER --install    makes the sites
    python -m tests.benchmarks.owntext FOLDER                    measures

SITES of `sites` says which; those in ASIDE were looked at for the final figures only. Folders of
Debian's documentation packages are read where they are installed. Nothing of it is kept here.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from minutch.conf import Configuration
from minutch.kernels import blocks as kernels
from minutch.records.textblocks import marks_of
from plugins.lib_html.maintext import BlockText
from plugins.lib_html.textblocks import block_of_line, places

from .byhand import BY_HAND
from .sites import SITES

ASIDE: Final = ("sqlalchemy", "market", "threads")
INSTALLED: Final = {
    "fish": ("/usr/share/doc/fish", "div.body", ""),
    "nodejs": ("/usr/share/doc/nodejs/api", "#apicontent", ""),
    "valgrind": ("/usr/share/doc/valgrind/html", "body > div[class]", ""),
    "javadoc": ("/usr/share/doc/openjdk-17-jre-headless/api", "main", ""),
    "doxygen": ("/usr/share/doc/gcc-12-base/libstdc++", "div.headertitle, div.contents", ""),
    "mediawiki": (
        "/usr/share/cppreference/doc/html/en",
        "#firstHeading, #mw-content-text",
        ".t-navbar, .editsection",
    ),
    "sqlalchemy": ("/usr/share/doc/python-sqlalchemy-doc/html", "#docs-body", ""),
    "django": ("/usr/share/doc/python-django-doc/html", "div.yui-g", ""),
}
"""Site → folder of a Debian package, what is the page's own, what counts for neither side."""


class Page(NamedTuple):
    """A page's lines, their marks, and whether each is the page's own; null where it counts for
    neither side.
    """

    url: str
    text: str
    marks: str
    own: list[bool | None]
    title: str


def read_site(folder: Path, name: str, most: int = 100) -> Iterator[Page]:
    """Yields a site's pages, `most` of them drawn at random; those without a page's own element are
    left out.
    """
    own, neither = ".own", ""
    if name in BY_HAND:
        neither = ".neither"
        written = BY_HAND[name](random.Random(1), most)
        found = ((str(number), page.encode()) for number, page in enumerate(written))
    else:
        if name in INSTALLED:
            at, own, neither = INSTALLED[name]
            place = Path(at)
        else:
            place, own, neither = folder / name / "out", SITES[name].own, SITES[name].neither
        paths = sorted(place.rglob("*.html"))
        random.Random(1).shuffle(paths)
        found = ((str(path.relative_to(place)), path.read_bytes()) for path in paths)
    extractor = BlockText(Configuration.load([]), {})
    count = 0
    for path, markup in found:
        document = LexborHTMLParser(markup)
        elements = document.css(own)
        url = f"https://{name.replace(' ', '-')}.example/{path}"
        judged = extractor.judge(url, markup, document)
        if not elements or judged is None:
            continue
        page, chances = judged
        lines = block_of_line(page)
        mine = _within(page.boxes, {node.mem_id for node in elements})
        left = _within(
            page.boxes, {node.mem_id for node in document.css(neither)} if neither else {}
        )
        box = page.blocks[lines, kernels.BOX]
        truth = [None if left[one] else bool(mine[one]) for one in box]
        head = document.css_first("title")
        title = head.text() if head else ""
        marks = marks_of(chances[lines], places(page)[lines])
        yield Page(url, page.text[:-1].decode(), marks, truth, title)
        count += 1
        if count == most:
            return


def _within(boxes: np.ndarray, nodes: Collection[int]) -> np.ndarray:
    """The boxes in elements with these addresses."""
    found = np.zeros(len(boxes), bool)
    for number, (outer, node) in enumerate(boxes[:, [kernels.OUTER, kernels.NODE]].tolist()):
        found[number] = node in nodes or (outer >= 0 and found[outer])
    return found
