"""How well `minutch changes` tells edits from noise: precision and recall of pages and of lines, on
made-up sites (`tests.support.scriptedsites`) by kind, number of visits and size.

    python -m tests.benchmarks.changes [--seeds N] [--kinds …] [--sizes …] [--visits …] [--wrong]
"""

from __future__ import annotations

import argparse
import os
import pickle
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import polars as pl

from minutch.cycle.parse.dispatch import ParseUtil
from minutch.cycle.segment.store import segments_in
from minutch.inspect.query.changes import UNCHANGED, Changes
from tests.support import oddsites, scriptedsites, tonguesites
from tests.support.pages import configuration
from tests.support.scriptedsites import KINDS, ScriptedSite, Told

SIZES: Final = (5, 12, 40, 150)
VISITS: Final = (2, 3, 5, 10)


def site_of(kind: str, size: int, seed: int) -> ScriptedSite:
    make = ScriptedSite if kind in KINDS else oddsites.OddSite
    if " " in kind:
        make = tonguesites.TongueSite
    return make(kind, size, seed, noise=seed % 6)


def counts(told: Told, crawl: Path) -> tuple[Counter[str], list[tuple[str, ...]]]:
    """Counts what is told, what is to be told, and what of it is right; and lists the rest."""
    segments = segments_in(crawl / "segments")
    names = {segment.name for segment in segments}
    events = Changes(crawl, segments).events()
    first = min(names)
    found = {
        (row["segment"], row["url"]): row
        for row in events.filter(pl.col("kind") != UNCHANGED).iter_rows(named=True)
        if row["segment"] != first
    }
    wanted = {key: change for key, change in told.items() if key[0] in names and key[0] != first}
    result, wrong = Counter[str](), list[tuple[str, ...]]()
    for key in sorted(found.keys() | wanted.keys()):
        is_kind = found[key]["kind"] if key in found else ""
        kind, removed, added = wanted.get(key, ("", frozenset[str](), frozenset[str]()))
        right = is_kind == kind or (kind == "soft" and is_kind in ("gone", "changed"))
        right |= kind == "soft back" and is_kind in ("back", "changed")
        result["pages told"] += bool(is_kind)
        result["pages edited"] += bool(kind)
        result["pages right"] += bool(kind) and right
        lines = set[tuple[str, str]]()
        for block in found[key]["blocks"] if key in found else ():
            sides = [side for side in ("removed", "added") if block[side] and not block["muted"]]
            lines |= {(side, block[side]) for side in sides}
        edits = {("removed", line) for line in removed} | {("added", line) for line in added}
        if kind.startswith("soft"):
            lines = set()
        result["lines told"] += len(lines)
        result["lines edited"] += len(edits)
        result["lines right"] += len(lines & edits)
        if not right:
            wrong.append((*key, f"{is_kind or '-'} for {kind or '-'}"))
        wrong += [(*key, f"told {side} {line}") for side, line in sorted(lines - edits)]
        wrong += [(*key, f"missed {side} {line}") for side, line in sorted(edits - lines)]
    return result, wrong


def shares(found: Counter[str]) -> list[float]:
    """Precision and recall of pages, and of lines."""
    return [
        found[f"{what} right"] / found[f"{what} {of}"] if found[f"{what} {of}"] else 1.0
        for what in ("pages", "lines")
        for of in ("told", "edited")
    ]


def first_visits(crawl: Path, visits: int, folder: Path) -> Path:
    """A crawl of the first visits of another one."""
    for segment in sorted((crawl / "segments").iterdir())[:visits]:
        shutil.copytree(segment, folder / "segments" / segment.name, copy_function=os.link)
    return folder


def judged(
    made: Path, kind: str, size: int, seed: int, visits: Sequence[int]
) -> Iterable[tuple[int, Counter[str], list[tuple[str, ...]]]]:
    """Yields, for numbers of visits, what is right of a site."""
    crawl = made / f"{kind}-{size}-{seed}".replace(" ", "-")
    if not (crawl / "told").exists():
        told = site_of(kind, size, seed).write(crawl, max(visits))
        (crawl / "told").write_bytes(pickle.dumps(told))
    told = pickle.loads((crawl / "told").read_bytes())
    for number in visits:
        with TemporaryDirectory(dir=made) as folder:
            yield number, *counts(told, first_visits(crawl, number, Path(folder)))


def seeds_of(size: int, seeds: int, first: int = 0) -> range | list[int]:
    """Small sites have few edits, so there are more of them; large ones take long."""
    if size > 100:
        return [seed for seed in range(first, first + seeds) if seed % 2]
    return range(first, first + seeds * (4 if size < 10 else 2 if size < 20 else 1))


def shown(cells: dict[tuple[str, int, int], Counter[str]]) -> Iterable[str]:
    """Yields the table: precision and recall of pages, then of lines."""
    kinds, visits, sizes = ([*dict.fromkeys(each)] for each in zip(*cells, strict=True))
    yield "| kind | visits | " + " | ".join(f"{size} pages" for size in sizes) + " |"
    yield "|---|---|" + "---|" * len(sizes)
    for number in sorted(visits):
        for kind in [*kinds, "all"]:
            row = []
            for size in sizes:
                mine = Counter[str]()
                for key, found in cells.items():
                    if kind in (key[0], "all") and key[1:] == (number, size):
                        mine.update(found)
                row.append(" ".join(f"{share:.3f}" for share in shares(mine)))
            yield f"| {kind} | {number} | " + " | ".join(row) + " |"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kinds", nargs="*", default=(*KINDS, *oddsites.KINDS, *tonguesites.KINDS))
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--visits", nargs="*", type=int, default=VISITS)
    parser.add_argument("--wrong", action="store_true", help="also what is wrong, by site")
    parser.add_argument("--keep", type=Path, help="a folder where sites are kept between runs")
    parser.add_argument("--text", default="blocks", help="parser.html.text: page has no marks")
    arguments = parser.parse_args()
    conf = configuration(**{"parser.html.text": arguments.text})
    scriptedsites.PARSER = ParseUtil(conf)  # type: ignore[misc]
    cells = dict[tuple[str, int, int], Counter[str]]()
    with TemporaryDirectory() as temporary:
        made = arguments.keep or Path(temporary)
        made.mkdir(exist_ok=True)
        for kind, size in product(arguments.kinds, arguments.sizes):
            for seed in seeds_of(size, arguments.seeds, arguments.first):
                for visits, found, wrong in judged(made, kind, size, seed, arguments.visits):
                    cells.setdefault((kind, visits, size), Counter()).update(found)
                    if arguments.wrong and wrong:
                        site = site_of(kind, size, seed)
                        print(kind, size, seed, visits, site.style, site.has_names, site.where)
                        for one in wrong:
                            print("   ", *one)
    print(*shown(cells), sep="\n", flush=True)


if __name__ == "__main__":
    main()
