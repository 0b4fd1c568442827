"""What is published beside WARC files: files of their own, one beside each, with records that refer to theirs.

The WARC files themselves are not written. `export warc` with the same options makes the very same, record by record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from email.utils import formatdate
from pathlib import Path

from minutch.archive.machine import this_machine
from minutch.archive.sources import given_segments
from minutch.archive.warcfile import V1_0, Output, WarcFiles, level_of
from minutch.archive.warcinfo import crawler_info
from minutch.archive.web.webarchive import RECORDS, Beside, Nowhere, Plan, planned, write_archive
from minutch.arguments import Flag, parse
from minutch.job import JobContext
from minutch.tables.textparts import output_folder
from minutch.version import __version__

_NEVER_FULL = 1 << 62


class Derived(Beside):
    """Files beside WARC files. A subclass makes the records; `suffix` stands in the names."""

    suffix = ""

    def __init__(self, plan: Plan, folder: Path, context: JobContext) -> None:
        self.plan, self._folder, self._context = plan, folder, context
        self._name = ""
        self.files = WarcFiles(
            self._open,
            compress=True,
            limit=_NEVER_FULL,
            version=V1_0,
            info=lambda: (plan.time, self.info()),
            level=level_of(context.conf),
        )

    def _open(self, number: int) -> tuple[str, Output]:
        return self._name, (self._folder / self._name).open("wb", buffering=1 << 18)

    def begin(self, name: str) -> None:
        self._name = f"{name.removesuffix('.gz')}.{self.suffix}.gz"
        self.files.open_next()

    def info(self) -> dict[str, str]:
        """The fields of the warcinfo record."""
        crawler = crawler_info(self._context.conf, *this_machine(), V1_0)
        made = {
            "Software-Info": f"minutch/{__version__}",
            "Extracted-Date": formatdate(self.plan.time / 1000, usegmt=True),
            "isPartOf": self.plan.prefix,
        }
        return made | {name: value for name, value in crawler.items() if name not in ("software", "robots")}


def export_derived(
    title: str,
    args: list[str],
    flags: Sequence[Flag],
    usage: str,
    context: JobContext,
    make: Callable[[Plan, Path, JobContext], Derived],
) -> int:
    """Write what `make` makes beside the WARC files of segments: 0 if done."""
    given = parse(args, flags, usage=usage, least=1)
    paths, out = given_segments(given, usage)
    plan = planned(given, paths, usage)
    with output_folder(out) as work:
        derived = make(plan, work, context)
        try:
            counters = write_archive(plan, context, lambda name: Nowhere(), [derived])
        finally:
            derived.files.close()
    counters[RECORDS] = derived.files.records
    context.report(title, counters)
    return 0
