"""Builds each crawler, runs it from one seed to the end, and finds which pages it stored.

All may have as many requests in flight, have no delay between them, obey robots.txt and store each
page on disk: minutch and Nutch in segments (links, text, metadata and two databases too), Scrapy
and colly with its links in a file, Crawlee too; spider keeps no links to itself, so that its file
has bodies only. minutch and Nutch ask a host for one page at a time, Scrapy for eight, which is its
default, the others have no bound of a host. Everything else is as each comes, or as its own
documentation recommends for speed: the files in `tests/benchmarks/peers` say what.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minutch.cycle.segment.store import CONTENT
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from tests.benchmarks import fetchers, nutch
from tests.benchmarks.crawls import web
from tests.benchmarks.crawls.samples import RECORD
from tests.benchmarks.fetchers import PEERS, PROJECT, PROPERTIES
from tests.benchmarks.measure import Cost, run

_BUILD_SECONDS: Final = 1800
_RULES: Final = "regex-urlfilter.txt"


class NotHere(Exception):
    """Why a crawler can't be had on this machine."""


@dataclass(frozen=True)
class Work:
    """A crawl: where, from which URL, with how many requests in flight at most."""

    folder: Path
    seed: str
    threads: int
    rounds: int = 50
    """Of minutch and Nutch, whose crawls end long before, when nothing is due."""
    trusted: Path | None = None
    """The authority of the servers' certificates."""
    samples: Path | None = None
    """Where perf writes which functions are at work; None without it."""

    @property
    def seeds(self) -> Path:
        """A folder with the file `seeds.txt`, made by `begin`."""
        return self.folder / "seeds"

    @property
    def stored(self) -> Path:
        """Where a peer stores pages."""
        return self.folder / "stored"

    def begin(self) -> None:
        """Make the folder, with seeds."""
        self.seeds.mkdir(parents=True)
        (self.seeds / "seeds.txt").write_text(f"{self.seed}\n", encoding="utf-8")


@dataclass(frozen=True)
class Crawler:
    """One of the measured."""

    name: str
    title: str
    build: Callable[[Path], Path]
    """Returns what is run, made below a folder. Raises NotHere."""
    crawl: Callable[[Path, Work], Cost]
    """Runs it."""
    pages: Callable[[Work], Iterable[object]]
    """The pages that it stored, one as often as it is there."""


def measure(crawler: Crawler, program: Path, work: Work) -> tuple[Cost, int, int]:
    """One crawl in a folder that is not there yet: its cost, the pages it stored, and how many of
    them differ.
    """
    work.begin()
    cost = crawler.crawl(program, work)
    found = list(crawler.pages(work))
    return cost, len(found), len(set(found))


# -- minutch and Nutch -----------------------------------------------------------------------------


def _segment_pages(work: Work) -> list[bytes]:
    """The URLs of all contents."""
    found = []
    for path in sorted(work.folder.glob(f"crawl/segments/*/{CONTENT}/part-*")):
        with SequenceFileReader(path / "data") as reader:
            found += [bytes(key) for key, _ in reader]
    return found


def _options(work: Work, **more: str) -> list[str | Path]:
    """What follows `crawl`, for both."""
    properties = PROPERTIES | {name.replace("_", "."): value for name, value in more.items()}
    given = [word for name, value in properties.items() for word in ("-D", f"{name}={value}")]
    most = [*given, "--num-threads", str(work.threads)]
    return [*most, "-s", work.seeds, "crawl", str(work.rounds)]


def _minutch(python: Path, work: Work) -> Cost:
    steps = work.folder / "steps.json"
    trusted = {} if work.trusted is None else {"http_tls_ca_file": str(work.trusted)}
    options = _options(work, **trusted)
    words = [python, "-m", "tests.benchmarks.crawls.cycle", steps, *options]
    if work.samples is not None:
        words = [*RECORD, work.samples, "--", *words]
    return run(words, cwd=work.folder, env=fetchers.environment())


def steps(work: Work) -> dict[str, tuple[float, float]]:
    """CPU seconds and seconds of each step of minutch's crawl."""
    with suppress(FileNotFoundError):
        found = json.loads((work.folder / "steps.json").read_text(encoding="utf-8"))
        return {name: (cpu, seconds) for name, (cpu, seconds) in found.items()}
    return {}


def _nutch_home(tools: Path) -> Path:
    found = nutch.find(tools / "nutch")
    if isinstance(found, str):
        raise NotHere(found)
    if found.home is None:
        raise NotHere("the published jar has no plugins; NUTCH_HOME names no installation")
    return found.home


def _nutch(home: Path, work: Work) -> Cost:
    """`bin/crawl`, with minutch's rules of URLs, since Nutch's may leave this machine out."""
    rules = work.folder / "conf"
    rules.mkdir()
    shutil.copy(PROJECT / "conf" / _RULES, rules)
    environment = fetchers.java_environment(work.folder)
    environment["NUTCH_CONF_DIR"] = os.pathsep.join(map(str, (rules, home / "conf")))
    options = _options(work, hadoop_tmp_dir=str(work.folder / "hadoop"))
    words: list[str | Path] = [home / "bin" / "crawl", *options]
    return run(words, cwd=work.folder, env=environment)


# -- the others ------------------------------------------------------------------------------------

_TITLE: Final = re.compile(re.escape(f"<title>{web.title(0)}<").replace("0", r"(\d+)").encode())


def _stored_pages(work: Work) -> list[bytes]:
    """The numbers of all pages in a peer's file."""
    return _TITLE.findall(work.stored.read_bytes())


def _program(program: Path, work: Work, *script: Path) -> Cost:
    given = [work.seeds / "seeds.txt", work.stored, str(work.threads)]
    follow = ["--follow"] if script else []
    trusted = {} if work.trusted is None else {"SSL_CERT_FILE": str(work.trusted)}
    return run([program, *script, *given, *follow], cwd=work.folder, env=os.environ | trusted)


def _python(script: str) -> Callable[[Path, Work], Cost]:
    return lambda python, work: _program(python, work, PEERS / script)


def _environment(tools: Path) -> Path:
    folder = tools / "python"
    try:
        fetchers.install_peers(folder)
    except (OSError, subprocess.SubprocessError) as exc:
        shutil.rmtree(folder, ignore_errors=True)
        raise NotHere(f"its package could not be installed: {exc}") from exc
    return folder / "bin" / "python"


def _built(name: str, *commands: list[str], program: str) -> Callable[[Path], Path]:
    """Builds a copy of a peer's sources, below the folder of tools."""

    def build(tools: Path) -> Path:
        folder = tools / name
        shutil.copytree(PEERS / name, folder, dirs_exist_ok=True)
        for words in commands:
            if shutil.which(words[0]) is None:
                raise NotHere(f"no {words[0]} on this machine")
            try:
                subprocess.run(
                    words,
                    cwd=folder,
                    check=True,
                    capture_output=True,
                    text=True,
                    timeout=_BUILD_SECONDS,
                )
            except (OSError, subprocess.SubprocessError) as exc:
                said = (getattr(exc, "stderr", None) or str(exc)).strip().splitlines()
                raise NotHere(f"{' '.join(words)}: {said[-1] if said else exc}") from exc
        return folder / program

    return build


CRAWLERS: Final = (
    Crawler(
        "minutch",
        "minutch crawl, all steps",
        lambda _: Path(sys.executable),
        _minutch,
        _segment_pages,
    ),
    Crawler(
        "spider",
        "spider (Rust)",
        _built(
            "spider",
            ["cargo", "build", "--release", "--quiet"],
            program="target/release/spiderpeer",
        ),
        _program,
        _stored_pages,
    ),
    Crawler(
        "colly",
        "colly (Go)",
        _built(
            "colly", ["go", "mod", "tidy"], ["go", "build", "-o", "crawl", "."], program="crawl"
        ),
        _program,
        _stored_pages,
    ),
    Crawler("crawlee", "Crawlee-python", _environment, _python("crawleespider.py"), _stored_pages),
    Crawler("scrapy", "Scrapy", _environment, _python("scrapyspider.py"), _stored_pages),
    Crawler("nutch", "Apache Nutch bin/crawl", _nutch_home, _nutch, _segment_pages),
)
