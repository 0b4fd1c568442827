"""Measures documents that `minutch index` sends to a CSV file per second of CPU, beside Nutch on
the same segment.

    python -m tests.benchmarks.indexing [--pages 100000] [--folder DIR] [--json FILE] [--no-nutch]

The filters are those of Nutch's defaults (index-basic, index-anchor), the writer is indexer-csv,
which both have. CPU time is that of the processes with all their workers; peak memory that of the
largest of them. Nutch needs an installation with plugins (NUTCH_HOME, JAVA_HOME). Both files have
to be equal but for the order of a page's anchors. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

from minutch.hadoop.formats.javaio import encode_vlong
from minutch.hadoop.formats.mapfile import MapFileReader, MapFileWriter
from minutch.hadoop.formats.sequencewriter import TEXT
from minutch.records.parsedata import ParseText
from minutch.work.tables.database import part_paths
from tests.benchmarks import data, nutch

PROJECT = Path(__file__).parents[2]
PLUGINS = (
    "protocol-http|urlfilter-regex|parse-html|index-(basic|anchor)|indexer-csv|scoring-opic"
    "|urlnormalizer-basic"
)
FIELDS = ("id", "title", "content", "url", "host", "anchor", "boost", "digest", "tstamp")
CSV = Path("csvindexwriter", "nutch.csv")
WORDS_PER_PAGE = 500
_MAKE = """import sys
from tests.benchmarks.indexing import Path, make_crawl
make_crawl(Path(sys.argv[1]), int(sys.argv[2]))
"""
_WORDS = (
    "river",
    "harbour",
    "quiet",
    "towns",
    "silver",
    "under",
    "and",
    "the",
    "lazy",
    "skies",
    "naïve",
    "old",
)


@dataclass
class Result:
    """The cost of one indexer: seconds, and bytes at the most."""

    name: str
    documents: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int

    @property
    def rate(self) -> float:
        """Documents per CPU second."""
        return self.documents / self.cpu_seconds


def make_crawl(folder: Path, pages: int) -> None:
    """A CrawlDb, a parsed segment and a LinkDb of made-up pages below `folder`; what is there is
    used again.
    """
    done = folder / "complete"
    if done.exists():
        return
    data.write_crawldb(folder / "crawldb", pages)
    segment = folder / data.SEGMENT
    data.write_segment(segment, pages, pages)
    for part in part_paths(segment / "parse_data"):
        _write_texts(part, segment / "parse_text" / part.name)
    command = [
        sys.executable,
        "-m",
        "minutch",
        "invertlinks",
        folder / "linkdb",
        segment,
        "-noNormalize",
        "-noFilter",
    ]
    subprocess.run(
        [str(word) for word in command], check=True, cwd=PROJECT, stderr=subprocess.DEVNULL
    )
    done.touch()


def _write_texts(parsed: Path, path: Path) -> None:
    """A text for each page of a part of parse_data."""
    texts = _texts()
    with (
        MapFileReader(parsed) as pages,
        MapFileWriter(path, TEXT, ParseText.class_name, compression="RECORD") as writer,
    ):
        for key, _ in pages:
            text = next(texts).encode()
            writer.append_raw(key, b"\x02" + encode_vlong(len(text)) + text)


def _texts() -> Iterator[str]:
    random = np.random.default_rng(7)
    while True:
        words = random.integers(0, len(_WORDS), WORDS_PER_PAGE)
        yield " ".join(_WORDS[word] for word in words) + ', "quoted"\n'


def measure(
    name: str,
    command: Sequence[str | Path],
    work: Path,
    documents: int,
    environment: dict[str, str],
) -> Result:
    """Run one indexer in the folder `work`."""
    work.mkdir(parents=True, exist_ok=True)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(
        [str(word) for word in command],
        check=True,
        cwd=work,
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Result(name, documents, time.monotonic() - start, cpu, after.ru_maxrss * 1024)


def configuration(folder: Path) -> Path:
    """A configuration folder with what both need."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nutch-site.xml").write_text(
        f"<configuration><property><name>plugin.includes</name><value>{PLUGINS}</value></property></configuration>"
    )
    (folder / "index-writers.xml").write_text(
        '<writers><writer id="csv"'
        ' class="org.apache.nutch.indexwriter.csv.CSVIndexWriter"><parameters>'
        f'<param name="fields" value="{",".join(FIELDS)}"/>'
        "</parameters><mapping><copy/><rename/><remove/></mapping></writer></writers>"
    )
    return folder


def run(folder: Path, pages: int, *, with_nutch: bool) -> list[Result]:
    """Measure minutch, then Nutch."""
    conf = configuration(folder / "conf")
    # In a process of its own: the memory that this one has had would count as its children's peak.
    subprocess.run([sys.executable, "-c", _MAKE, folder, str(pages)], check=True, cwd=PROJECT)
    arguments = [
        folder / "crawldb",
        "-linkdb",
        folder / "linkdb",
        folder / data.SEGMENT,
        "-noCommit",
    ]
    command = [sys.executable, "-m", "minutch", "index", *arguments]
    environment = {"NUTCH_CONF_DIR": str(conf), "PYTHONPATH": str(PROJECT)}
    results = [measure("minutch", command, folder / "minutch", pages, environment)]
    peer = nutch.find(folder / "nutch-conf") if with_nutch else "not wanted"
    if isinstance(peer, nutch.Nutch) and peer.home is not None:
        environment["NUTCH_CONF_DIR"] = f"{conf}:{peer.home / 'conf'}"
        nutchs = peer.command("index", {"mapreduce.job.reduces": "1"}, arguments)
        results.append(measure(peer.name, nutchs, folder / "nutch", pages, environment))
        ours, theirs = (_lines(folder / name / CSV) for name in ("minutch", "nutch"))
        if differing := sum(one != other for one, other in zip_longest(ours, theirs)):
            raise SystemExit(f"{differing} lines of the CSV files differ")
    else:
        print(
            f"no Nutch with plugins: {peer if isinstance(peer, str) else peer.name}",
            file=sys.stderr,
        )
    return results


def _lines(path: Path) -> Iterator[list[str]]:
    """The lines of a CSV file, with the anchors of a page sorted: Nutch has them in the order of a
    hash table.
    """
    csv.field_size_limit(1 << 30)
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.reader(file):
            at = FIELDS.index("anchor")
            yield [*line[:at], *sorted(line[at].split("|")), *line[at + 1 :]]


def markdown(results: list[Result]) -> str:
    """The results as a table."""
    lines = ["| indexer | documents | seconds | CPU seconds | documents per CPU second | peak MB |"]
    lines += ["|---|--:|--:|--:|--:|--:|"]
    for found in results:
        numbers = (
            f"{found.documents:,} | {found.seconds:.1f} | {found.cpu_seconds:.1f} |"
            f" {found.rate:,.0f}"
        )
        lines.append(f"| {found.name} | {numbers} | {found.peak_bytes / 1e6:.0f} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--no-nutch", action="store_true")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = given.folder or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="minutch-indexing-"))
        )
        results = run(folder, given.pages, with_nutch=not given.no_nutch)
    print(markdown(results))
    if given.json:
        given.json.write_text(json.dumps([asdict(result) for result in results], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
