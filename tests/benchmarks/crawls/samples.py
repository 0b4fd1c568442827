"""Says what a crawl spends its CPU on, by samples of native frames, as perf takes them of a process
and all below it. Samples fall into parts by the library and the function that was at work.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from minutch.kernels import library
from tests.benchmarks.broad.tables import number, table

RECORD: Final = ("perf", "record", "-F", "199", "-o")
_PARTS: Final = (
    ("kernel", r"^\[kernel|^\[vdso"),
    ("C library", r"^lib(?:c|m|pthread|stdc\+\+|gcc_s)[.-]|^ld-linux"),
    ("hashes", r"libcrypto.* .*(?:md5|sha1|sha256)"),
    ("TLS", r"libssl|libcrypto|_ssl"),
    ("libcurl", r"libcurl|pycurl|nghttp2|cares"),
    ("tree", r"lexbor"),
    ("text", r"minutch_(?:html|blocks|features|markup|occurrences|scan)_"),
    ("links", r"minutch_(?:urls|outlinks|links|inlinks|sieve|patterns)_|upa"),
    ("deflate", r"isal|igzip|_deflate|libz|zlib|libdeflate|minutch_deflate_"),
    ("files, databases", r"minutch_|polars|arrow"),
    ("NumPy", r"numpy|multiarray|openblas"),
    ("Python", r"python|msgspec|\.so|\[unknown\]|perf-"),
)
"""Parts, and what a library and a function match of theirs; the first counts."""
_LINE: Final = re.compile(r"\s*([0-9.]+)%\s+(\S+)\s+\[[.k]\]\s+(\S.*?)\s*(?:-\s+-\s*)?$")


def missing() -> str:
    """Why there are no samples to be had here; empty if there are."""
    if shutil.which("perf") is None:
        return "perf is not installed"
    tried = subprocess.run(
        ["perf", "record", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False
    )
    return "" if tried.returncode == 0 else f"perf: {tried.stderr.strip().splitlines()[-1:]}"


def shares(file: Path) -> dict[str, float]:
    """What part of all samples each part has, in percent."""
    words = ["perf", "report", "-i", str(file), "--stdio", "--sort", "dso,symbol", "-g", "none"]
    report = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return parts_of(report.splitlines())


def parts_of(report: Iterable[str]) -> dict[str, float]:
    """Adds up the lines of `perf report`."""
    found: Counter[str] = Counter()
    for line in report:
        if match := _LINE.match(line):
            share, place, function = match.groups()
            found[_part(place, function)] += float(share)  # type: ignore[assignment]
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _part(place: str, function: str) -> str:
    if place == library.PATH.name and function.startswith("0x"):
        function = _kernel_at(int(function, 16))
    text = f"{place} {function}"
    return next((part for part, pattern in _PARTS if re.search(pattern, text)), "other")


def _kernel_at(address: int) -> str:
    """The kernel that is at an address: those that are called by kernels alone have no names."""
    places, names = _kernels()
    return names[max(0, bisect_right(places, address) - 1)] if names else ""


@cache
def _kernels() -> tuple[list[int], list[str]]:
    words = ["nm", "-D", "--defined-only", str(library.PATH)]
    try:
        lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return [], []
    found = sorted((int(line.split()[0], 16), line.split()[2]) for line in lines.splitlines())
    return [place for place, _ in found], [name for _, name in found]


def report(found: dict[str, float], cpu: float, pages: int) -> str:
    """The table of a crawl that took `cpu` seconds."""
    whole = sum(found.values()) or 1
    return table(
        ("minutch, by samples", "%", "ms CPU/page"),
        (
            (part, number(100 * share / whole, 1), number(1000 * share / whole * cpu / pages, 2))
            for part, share in found.items()
        ),
    )
