"""Measures what many small segments cost those who read them, beside one with the same pages.

    python -m tests.benchmarks.manysegments [--pages 2400] [--segments 180] [--folder DIR]
                                            [--repeat 3]

Prints a Markdown table: CPU seconds of each command, start included, over one segment and over
many, and the ratio, of which the goal is at most 2. Of --repeat runs the cheapest counts; both take
turns. Slices are cut by URLs, most of which are links: of --segments 180 become 258.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.benchmarks import data
from tests.benchmarks.indexing import make_crawl
from tests.benchmarks.measure import run

PROJECT = Path(__file__).parents[2]
COMMANDS = {
    "audit": ("audit", "{crawl}"),
    "sql, pages": ("sql", "{crawl}", "select status, count(*) from pages group by 1"),
    "sql, parses": ("sql", "{crawl}", "select lang, sum(words) from parses group by 1"),
    "sql, links": ("sql", "{crawl}", "select count(*) from links where anchor is not null"),
    "report": ("report", "{crawl}", "-o", "{crawl}/report.html", "--force"),
    "explain": ("explain", "{url}", "{crawl}"),
    "updatedb": ("updatedb", "{scratch}/crawldb", "-dir", "{crawl}/segments"),
    "invertlinks": ("invertlinks", "{scratch}/linkdb", "-dir", "{crawl}/segments"),
    "dedup": ("dedup", "{scratch}/crawldb"),
    "index": ("index", "{scratch}/crawldb", "-dir", "{crawl}/segments"),
    "mergesegs": ("mergesegs", "{scratch}/merged", "-dir", "{crawl}/segments"),
}
"""Those of jobs go on with what the ones before them made."""
SETTINGS = {
    "http.agent.name": "minutch-benchmark",
    "plugin.includes": "urlnormalizer-pass|index-basic|indexer-dummy|scoring-opic",
}


def command(*words: object) -> list[str]:
    """A command line of minutch."""
    name, *rest = map(str, words)
    settings = [word for key, value in SETTINGS.items() for word in ("-D", f"{key}={value}")]
    return [sys.executable, "-m", "minutch", name, *settings, *rest]


def cpu(words: list[str], scratch: Path) -> float:
    """CPU seconds of a command."""
    return run(words, cwd=scratch, env={**os.environ, "PYTHONPATH": str(PROJECT)}).cpu_seconds


def make(folder: Path, pages: int, segments: int) -> dict[str, Path]:
    """The same crawl twice: its pages in one segment, and in many."""
    made = folder / "made"
    make_crawl(made, pages)
    crawls = {"one": folder / "one", "many": folder / "many"}
    for name, crawl in crawls.items():
        if crawl.exists():
            continue
        crawl.mkdir()
        shutil.copytree(made / "crawldb", crawl / "crawldb")
        slices = ("-slice", -(-pages // segments)) if name == "many" else ()
        cpu(command("mergesegs", crawl / "segments", made / data.SEGMENT, *slices), crawl)
    return crawls


def measure(crawls: dict[str, Path], scratch: Path, repeat: int) -> dict[str, dict[str, float]]:
    """CPU seconds of each command over each of the crawls."""
    url = data.urls(np.arange(1, dtype=np.uint64))[0]
    best: dict[str, dict[str, float]] = {name: {} for name in COMMANDS}
    for _ in range(repeat):
        for which, crawl in crawls.items():
            mine = scratch / which
            shutil.rmtree(mine, ignore_errors=True)
            mine.mkdir()
            for name, words in COMMANDS.items():
                filled = [word.format(crawl=crawl, scratch=mine, url=url) for word in words]
                found = cpu(command(*filled), mine)
                best[name][which] = min(found, best[name].get(which, found))
    return best


def markdown(best: dict[str, dict[str, float]], crawls: dict[str, Path]) -> str:
    """The table."""
    count = len([path for path in (crawls["many"] / "segments").iterdir() if path.is_dir()])
    lines = [f"| CPU seconds | one segment | {count} segments | ratio |", "|---|--:|--:|--:|"]
    for name, found in best.items():
        one, many = found["one"], found["many"]
        lines.append(f"| {name} | {one:.2f} | {many:.2f} | {many / one:.2f} |")
    return "\n".join(lines)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=2400)
    parser.add_argument("--segments", type=int, default=180)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch) / "crawls"
        folder.mkdir(parents=True, exist_ok=True)
        crawls = make(folder, given.pages, given.segments)
        print(markdown(measure(crawls, Path(scratch), given.repeat), crawls))
    return 0


if __name__ == "__main__":
    sys.exit(main())
