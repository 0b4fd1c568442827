"""Runs the exports that write files beside WARC files: wat and wet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from minutch.archives.web.companions import CompanionFiles
from minutch.archives.web.webarchive import RECORDS, ArchiveSpec, DiscardedOutput, write_archive
from minutch.commands.arguments import Flag, parse
from minutch.commands.exports.segmentargs import archive_spec, given_segments
from minutch.job import JobContext
from minutch.work.tables.textparts import output_folder


def export_derived(
    title: str,
    args: list[str],
    flags: Sequence[Flag],
    usage: str,
    context: JobContext,
    make: Callable[[ArchiveSpec, Path, JobContext], CompanionFiles],
) -> int:
    """Write what `make` makes beside the WARC files of segments: 0 if done."""
    given = parse(args, flags, usage=usage, least=1)
    paths, out = given_segments(given, usage)
    plan = archive_spec(given, paths, usage)
    with output_folder(out) as work:
        derived = make(plan, work, context)
        try:
            counters = write_archive(plan, context, lambda name: DiscardedOutput(), [derived])
        finally:
            derived.files.close()
    counters[RECORDS] = derived.files.records
    context.report(title, counters)
    return 0
