"""Measures own text on real and made-up sites, with 1, 5, 20 and 100 pages of each."""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import NamedTuple

from minutch.cycle.owntext.texts import own_texts
from minutch.cycle.segment.store import PARSE_DATA, PARSE_TEXT, Segment, part_writer
from minutch.records.metadata import Metadata
from minutch.records.parsedata import SUCCESS, ParseData, ParseStatus, ParseText
from minutch.records.textblocks import BLOCKS_KEY

from . import ASIDE, INSTALLED, Page, read_site
from .byhand import BY_HAND
from .sites import SITES

COUNTS = (1, 5, 20, 100)


class Score(NamedTuple):
    """Characters that are own and kept, kept, own; seconds of CPU; bytes of counts."""

    both: int
    kept: int
    own: int
    seconds: float = 0
    size: int = 0

    def __str__(self) -> str:
        return f"{self.both / max(self.kept, 1):.3f} {self.both / max(self.own, 1):.3f}"


def write(crawl: Path, pages: Sequence[Page]) -> Segment:
    """A segment with these pages."""
    path = crawl / "segments/20240101000000"
    with part_writer(path, PARSE_DATA, 0) as put, part_writer(path, PARSE_TEXT, 0) as put_text:
        for page in sorted(pages):
            meta = Metadata.of({BLOCKS_KEY: page.marks})
            put(page.url, ParseData(ParseStatus(SUCCESS), page.title, parse_meta=meta))
            put_text(page.url, ParseText(page.text))
    return Segment(path)


def score(pages: Sequence[Page]) -> Score:
    """What is kept of a site that has these pages."""
    with TemporaryDirectory() as folder:
        segment = write(Path(folder), pages)
        began = process_time()
        kept = {
            url: {*numbers}
            for table in own_texts(Path(folder), [segment])
            for url, numbers in table.select("url", "kept").rows()
        }
        seconds = process_time() - began
        size = sum(path.stat().st_size for path in Path(folder, "frames").rglob("counts*/*"))
    both = of_kept = of_own = 0
    for page in pages:
        for number, (line, own) in enumerate(zip(page.text.split("\n"), page.own, strict=True)):
            if own is not None:
                is_kept = number in kept[page.url]
                both += len(line) * (own and is_kept)
                of_kept += len(line) * is_kept
                of_own += len(line) * own
    return Score(both, of_kept, of_own, seconds, size)


def scores(pages: Sequence[Page]) -> Iterator[Score]:
    """A score for each of COUNTS, over several sites of so few pages."""
    for count in COUNTS:
        found = []
        for seed in range(max(1, 20 // count)):
            drawn = random.Random(seed).sample(pages, min(count, len(pages)))
            found.append(score(drawn))
        yield Score(*(sum(values) for values in zip(*found, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the sites are")
    parser.add_argument("sites", nargs="*", metavar="SITE")
    options = parser.parse_args()
    print("precision and recall over characters; the last: ms a page and kB of counts of all pages")
    print(f"{'':20}" + "".join(f"{count:>14}" for count in COUNTS))
    for name in options.sites or [*SITES, *INSTALLED, *BY_HAND]:
        pages = [*read_site(options.folder, name)]
        if pages:
            found = [*scores(pages)]
            cost = f"{1000 * found[-1].seconds / len(pages):6.1f} {found[-1].size / 1000:6.0f}"
            mark = " *" if name in ASIDE else ""
            print(f"{name + mark:20}" + "".join(f"{one!s:>14}" for one in found) + cost, flush=True)


if __name__ == "__main__":
    main()
