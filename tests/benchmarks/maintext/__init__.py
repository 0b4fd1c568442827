"""How well main text is found, and how fast: pages whose main text people have written down.

    python -m tests.benchmarks.maintext --pages FOLDER          measures extractors side by side
    python -m tests.benchmarks.maintext.train --pages FOLDER    makes plugins/lib_html/maintext.npz

FOLDER has `html/NAME.html.gz` and `ground-truth/NAME.json`, as WCXB has them (Web Content
eXtraction Benchmark, Murrough Foley, CC BY 4.0: its development pages). Nothing of it is kept here.
A fifth of the sites, chosen by a hash of their names, is put aside: nothing is learned from it.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


@dataclass
class TruePage:
    """A page and its main text."""

    name: str
    url: str
    kind: str
    raw: bytes
    text: str

    @property
    def site(self) -> str:
        """Its domain: all pages of one are either learned from or put aside."""
        labels = (urlsplit(self.url).hostname or self.name).split(".")
        is_two = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SECOND
        return ".".join(labels[-3:] if is_two else labels[-2:])

    @property
    def is_aside(self) -> bool:
        """Whether it is one of the fifth that nothing is learned from."""
        return part_of("aside:" + self.site) == 0


_SECOND = ("ac", "co", "com", "gov", "net", "org")


def part_of(name: str) -> int:
    """One of five parts, by a hash."""
    return int(sha256(name.encode()).hexdigest(), 16) % 5


def pages_in(folder: Path) -> Iterator[TruePage]:
    """Yields the pages of a folder, by name."""
    for path in sorted((folder / "ground-truth").glob("*.json")):
        truth = json.loads(path.read_text())
        about: Any = (truth.get("_internal") or {}).get("page_type") or "article"
        kind = about.get("primary", "article") if isinstance(about, dict) else about
        yield TruePage(
            path.stem,
            truth.get("url") or f"http://{path.stem}/",
            "collection" if kind == "category" else kind,
            gzip.decompress((folder / "html" / f"{path.stem}.html.gz").read_bytes()),
            (truth.get("ground_truth") or {}).get("main_content") or "",
        )


def words_of(text: str) -> list[str]:
    """The words that are counted, as WCXB's scorer does."""
    return re.findall(r"\w+", text.lower())


def word_f1(found: str, truth: str) -> float:
    """F1 over words as a bag, as WCXB's scorer has it."""
    ours, theirs = Counter(words_of(found)), Counter(words_of(truth))
    if not theirs or not ours:
        return float(ours == theirs)
    return 2 * (ours & theirs).total() / (ours.total() + theirs.total())
