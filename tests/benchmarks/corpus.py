"""Holds filters and near-duplicates of `export corpus` against datatrove's, on the same texts.

    python -m venv ENV
    ENV/bin/pip install datatrove spacy tokenizers regex ftfy nltk tldextract 'xxhash<4'
    python -m tests.benchmarks.corpus --python ENV/bin/python [--folder PAGES] [--texts 3000]

Prints how often both decide alike about a text, which copies of texts both find, how many pairs of
a cluster they have in common, and the CPU seconds of each, in one process.

PAGES has `NAME.json` as WCXB's `ground-truth` has them (Web Content eXtraction Benchmark, Murrough
Foley, CC BY 4.0); without it, texts are made of sentences of these docs. To every second text
comes a copy that is edited: of its words so many in a hundred are changed, twenty are inserted, or
the last third is cut off.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import polars as pl

from minutch.cycle.owntext.near import band_keys
from minutch.inspect.corpus import export, rows, signals
from tests.benchmarks.neardups import Edit, changed, inserted

T = TypeVar("T")
_THEIRS: Final = Path(__file__).with_name("bydatatrove.py")
_DOCS: Final = Path(__file__).parents[2] / "minutch/docs"


def _cut(rng: random.Random, words: list[str], other: list[str]) -> list[str]:
    return words[: -(len(words) // 3) or None]


EDITS: Final[dict[str, Edit]] = {
    **{f"{percent} % changed": changed(percent / 100) for percent in (1, 3, 5, 10, 20, 40)},
    "20 words inserted": inserted,
    "a third cut off": _cut,
}


class Copy(NamedTuple):
    """An edited copy: what was done, the numbers of the text and of the copy."""

    edit: str
    text: int
    copy: int


def made_up(count: int) -> list[str]:
    """Texts of 5 to 40 sentences of the docs that have no paths and names in them, in paragraphs:
    with these, shares of signs lie where filters decide.
    """
    rng = random.Random(1)
    docs = " ".join(path.read_text("utf-8") for path in sorted(_DOCS.glob("*.md")))
    sentences = re.findall(r"[A-Z][^.|`\n#/_=<>*]{30,200}\.", docs.replace("\n", " "))
    return [
        "\n".join(" ".join(rng.choices(sentences, k=5)) for _ in range(rng.randint(1, 8)))
        for _ in range(count)
    ]


def stored(folder: Path, count: int) -> list[str]:
    """The main texts of pages, by WCXB."""
    files = sorted(folder.glob("*.json"))
    found = (json.loads(file.read_text("utf-8")).get("ground_truth") or {} for file in files)
    texts = ((one.get("main_content") or "").strip() for one in found)
    return [text for text in texts if text][:count]


def with_copies(texts: Sequence[str]) -> tuple[list[str], list[Copy]]:
    """Returns the texts, with copies behind them."""
    rng = random.Random(1)
    every, copies, names = list(texts), [], list(EDITS)
    for number in range(0, len(texts), 2):
        name = names[number // 2 % len(names)]
        other = texts[rng.randrange(len(texts))].split(" ")
        copies.append(Copy(name, number, len(every)))
        every.append(" ".join(EDITS[name](rng, texts[number].split(" "), other)))
    return every, copies


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """CPU seconds, and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def ours(texts: Sequence[str]) -> tuple[float, dict[str, list[str]]]:
    """CPU seconds of all signals and filters, and of each filter the reason for each text."""
    signals.measures(pl.Series(["A first text."]))

    def decide() -> dict[str, list[str]]:
        table, _ = signals.measures(pl.Series(texts))
        found = {}
        for name, rules in export.rules().items():
            cases = " ".join(f"when {rule} then '{reason}'" for reason, rule in rules.items())
            if rules:
                decided = pl.sql_expr(f"case {cases} else '' end").alias("reason")
                found[name] = table.select(decided)["reason"].to_list()
        return found

    return timed(decide)


def our_clusters(texts: Sequence[str]) -> tuple[float, list[int]]:
    """CPU seconds, and the first text of the cluster of each."""
    band_keys(pl.Series(["A first text."]))

    def find() -> list[int]:
        keys = band_keys(pl.Series(texts))
        every = np.ones(len(texts), np.bool_)
        return rows.clusters(lambda band: keys[band].to_numpy(), every, 1 << 30).tolist()

    return timed(find)


def clusters(bands: Sequence[Sequence[object]]) -> list[int]:
    """The first text of the cluster of each: all of which a band is the same, as datatrove's steps
    of buckets and clusters have it.
    """
    first: dict[tuple[int, object], int] = {}
    rows = list(range(len(bands)))

    def root(row: int) -> int:
        while rows[row] != row:
            row = rows[row]
        return row

    for row, keys in enumerate(bands):
        for band, key in enumerate(keys):
            a, b = root(first.setdefault((band, key), row)), root(row)
            rows[max(a, b)] = min(a, b)
    return [root(row) for row in rows]


def pairs(heads: Sequence[int]) -> set[tuple[int, int]]:
    """The pairs of texts in a cluster."""
    members: dict[int, list[int]] = {}
    for row, head in enumerate(heads):
        members.setdefault(head, []).append(row)
    return {pair for rows in members.values() for pair in combinations(rows, 2)}


def show(texts: Sequence[str], copies: Sequence[Copy], theirs: Mapping[str, Any]) -> None:
    """Prints the tables."""
    size = sum(map(len, texts)) / len(texts)
    print(f"{len(texts):,} texts, {len(copies):,} of them copies, {size:,.0f} characters each\n")
    seconds, mine = ours(texts)
    print("| filters | left out | by datatrove | the same answer | the same reason |")
    print("|---|--:|--:|--:|--:|")
    total = 0.0
    for name, (cost, found) in theirs["filters"].items():
        total += cost
        both = list(zip(mine[name], found, strict=True))
        print(
            f"| {name} | {sum(map(bool, mine[name]))} | {sum(map(bool, found))} |"
            f" {sum(bool(a) == bool(b) for a, b in both) / len(texts):.4f} |"
            f" {sum(a == b for a, b in both) / len(texts):.4f} |"
        )
    cost, heads = our_clusters(texts)
    their_cost, bands = theirs["bands"]
    other = clusters(bands)
    print("\n| copies | found | by datatrove |\n|---|--:|--:|")
    for edit in EDITS:
        some = [(one.text, one.copy) for one in copies if one.edit == edit]
        shares = [
            f"{sum(of[a] == of[b] for a, b in some) / max(len(some), 1):.3f}"
            for of in (heads, other)
        ]
        print(f"| {edit} | {' | '.join(shares)} |")
    a, b = pairs(heads), pairs(other)
    same = len(a & b) / max(len(a | b), 1)
    print(f"\n{len(a)} pairs in clusters, {len(b)} by datatrove; {same:.3f} of all are both's\n")
    print("| | CPU s | datatrove | |\n|---|--:|--:|--:|")
    print(f"| signals and filters | {seconds:.2f} | {total:.2f} | 1/{total / seconds:.0f} |")
    print(f"| MinHash | {cost:.2f} | {their_cost:.2f} | 1/{their_cost / cost:.0f} |")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", required=True)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--texts", type=int, default=3000)
    given = parser.parse_args()
    found = stored(given.folder, given.texts) if given.folder else made_up(given.texts)
    texts, copies = with_copies(found)
    done = subprocess.run(
        [given.python, str(_THEIRS)],
        input=json.dumps(texts),
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    show(texts, copies, json.loads(done.stdout))


if __name__ == "__main__":
    main()
