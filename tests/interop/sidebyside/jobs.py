"""All jobs over one crawl, by Nutch and by this crawler, and what they make of it."""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minutch.cycle.hostdb.store import HostDb
from tests.interop.sidebyside.crawls import Records, Step, stored, timeless

OUTPUT: Final = "out"
"""Has the folders of files that jobs write."""
INDEX: Final = f"{OUTPUT}/index"
_RULES: Final = ("", "-filter", "-normalize", "-filter -normalize")


@dataclass(frozen=True)
class Job:
    """A command, its words (paths in the crawl's folder, `out/…` for what is new), and options of
    which it has one, by the seed.
    """

    command: str
    words: str
    options: Sequence[str] = ("",)


JOBS: Final = (
    Job("updatehostdb", "-hostdb {}/hostdb -crawldb {}/crawldb", _RULES),
    Job("readhostdb", "{}/hostdb {}/out/hosts", ("", "-dumpHostnames", "-expr fetched>1")),
    Job(
        "readdb",
        "{}/crawldb -dump {}/out/db",
        ("", "-status db_fetched", "-retry 1", "-regex .*p1.*", "-expr score>0.5"),
    ),
    Job("readdb", "{}/crawldb -dump {}/out/json -format json", ("", "-expr status=='db_gone'")),
    Job(
        "readdb",
        "{}/crawldb -dump {}/part/crawldb -format crawldb",
        ("-status db_fetched", "-regex .*com.*"),
    ),
    Job("readdb", "{}/crawldb -topN 1000 {}/out/top", ("", "0.1")),
    Job("readlinkdb", "{}/linkdb -dump {}/out/links"),
    Job(
        "readseg",
        "-dump {newest} {}/out/seg",
        ("", "-nocontent", "-nofetch -noparsetext", "-nogenerate -noparsedata", "-noparse -recode"),
    ),
    Job("domainstats", "{}/crawldb {}/out/domains", ("host", "domain", "suffix", "tld")),
    Job("protocolstats", "{}/crawldb {}/out/protocols"),
    Job(
        "crawlcomplete",
        "-inputDirs {}/crawldb -outputDir {}/out/complete -mode",
        ("host", "domain"),
    ),
    Job("mergedb", "{}/merged/crawldb {}/crawldb {}/first", _RULES),
    Job("mergelinkdb", "{}/merged/linkdb {}/linkdb", _RULES),
    Job("mergesegs", "{}/merged/segments -dir {}/segments", _RULES),
    Job("freegen", "{}/urls {}/free/segments", _RULES),
    Job("webgraph", "-webgraphdb {}/graph -segmentDir {}/segments", ("", "-n", "-f", "-n -f")),
    Job("linkrank", "-webgraphdb {}/graph"),
    Job(
        "nodedumper",
        "-webgraphdb {}/graph -output {}/out/nodes",
        ("-inlinks", "-outlinks", "-scores", "-inlinks -group host sum", "-scores -topn 1000"),
    ),
    Job("scoreupdater", "-crawldb {}/ranked/crawldb -webgraphdb {}/graph"),
    Job(
        "index",
        "{}/crawldb -linkdb {}/linkdb -dir {}/segments",
        ("", "-deleteGone -filter -normalize", "-addBinaryContent -base64", "-deleteGone"),
    ),
    Job(
        "generate",
        "{}/crawldb {}/next/segments -adddays 100",
        ("", "-expr score>0.1", "-hostdb {}/hostdb", "-noFilter", "-noNorm -maxNumSegments 2"),
    ),
    Job("updatedb", "{}/again/crawldb -dir {}/segments", ("", "-normalize", "-filter")),
)
"""Left out: the CSV of readdb, and a selection of links, which Nutch gets wrong
(docs/compatibility.md), and what is only printed.
"""


def run_all(crawl: Path, seed: int, step: Step) -> list[str]:
    """Runs all jobs over the crawl in a folder, which they change; returns those that failed."""
    chance = random.Random(f"jobs {seed}")
    (crawl / INDEX).mkdir(parents=True)
    for copy in ("ranked", "again"):
        shutil.copytree(crawl / "crawldb", crawl / copy / "crawldb")
    (crawl / "urls").mkdir()
    seeds = re.findall(r"^\s*(http\S+)", (crawl / "seeds/seeds.txt").read_text("utf-8"), re.M)
    (crawl / "urls" / "urls.txt").write_text("\n".join(seeds), encoding="utf-8")
    step("inject", crawl / "first", crawl / "seeds")
    newest = str(max((crawl / "segments").iterdir()))
    failed = []
    for job in JOBS:
        line = f"{job.words} {chance.choice(job.options)}"
        words = line.replace("{newest}", newest).replace("{}", str(crawl))
        if not step(job.command, *words.split()):
            failed.append(f"{job.command} {line}")
    return failed


def made(crawl: Path) -> Records:
    """What the jobs have made: part of the crawl → URL, host or line → records, how often."""
    found: Records = {
        f"{name}/{part}": records
        for name in ("merged", "part", "ranked", "again", "free", "next")
        for part, records in stored(crawl / name).items()
    }
    # Nutch never has home pages (docs/compatibility.md).
    found["hostdb"] = {
        host: [_homeless(str(one))] for host, one in HostDb(crawl / "hostdb").items()
    }
    for path in sorted((crawl / OUTPUT).rglob("*")):
        if path.is_file() and path.suffix != ".crc" and path.name != "_SUCCESS":
            text = timeless(path.read_text("utf-8", "backslashreplace"))
            name = str(path.relative_to(crawl))
            lines = Counter(_homeless(line).strip() for line in text.splitlines())
            found[name] = {line: [f"{count} times"] for line, count in lines.items()}
    return found


def _homeless(line: str) -> str:
    return re.sub(r"(?<=1970-01-01 00:00:00\t)http://[^\t]*", "", line)


def all_jobs(
    crawl: Path, folder: Path, seed: int, steps: Mapping[str, Step]
) -> dict[str, tuple[list[str], Records]]:
    """Runs all jobs over a copy of a crawl by each of some; returns what failed, and what they have
    made. Copies lie in the same `folder`, one after the other, since paths are written down.
    """
    found = {}
    for name, step in steps.items():
        shutil.copytree(crawl, folder)
        failed = run_all(folder, seed, step)
        found[name] = failed, made(folder)
        folder.rename(folder.with_name(f"{folder.name}-{name}"))
    return found
