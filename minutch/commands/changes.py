"""changes: what visits of a crawl's pages found that the visits before did not, as text, JSON lines
or an Atom feed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import polars as pl

from minutch import strictjson
from minutch.commands.arguments import Arguments
from minutch.cycle.owntext.worddiff import ADDED, REMOVED, SAME
from minutch.errors import MinutchError
from minutch.inspect.query.changes import UNCHANGED, Changes, Since
from minutch.inspect.query.crawl import open_crawl
from minutch.job import JobContext
from minutch.terminal import (
    BOLD,
    DIM,
    GREEN,
    PLAIN,
    RED,
    counted,
    folded,
    raw,
    visible_line,
    width_of,
)

_SEGMENT: Final = re.compile(r"\d{14}")
_AGO: Final = re.compile(r"(\d{1,6})([dhm])")
_UNITS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000}
_COLOURS: Final = {REMOVED: RED, ADDED: GREEN}
_INDENT: Final = 4


def run(arguments: Arguments, context: JobContext) -> int:
    """Runs the command. Exit code 0, also if nothing has changed."""
    if arguments["--jsonl"] and arguments["--atom"]:
        arguments.fail("one of --jsonl and --atom")
    crawl = open_crawl(arguments["crawl"])
    since = _since(arguments["--since"], context) if arguments["--since"] is not None else None
    with_muted = bool(arguments["--all"])
    changes = Changes(crawl.path, crawl.segments, since, with_muted=with_muted)
    events = changes.events()
    is_quiet = pl.col("kind") == UNCHANGED
    if arguments["--atom"]:
        from minutch.inspect.search.changepages import feed

        context.out.write(feed(crawl.path.resolve().name, changes.told(events)))
    elif arguments["--jsonl"]:
        for event in (events if with_muted else events.filter(~is_quiet)).iter_rows(named=True):
            context.print(strictjson.dumps(_as_json(event, with_muted=with_muted)))
    else:
        _show(events, changes.told(events), context, with_muted=with_muted)
    return 0


def _since(word: str, context: JobContext) -> Since:
    """Returns what `--since` means. Raises MinutchError."""
    name = Path(word).name
    if _SEGMENT.fullmatch(name):
        return Since(segment=name)
    if found := _AGO.fullmatch(word):
        return Since(context.clock.now() - int(found[1]) * _UNITS[found[2]])
    try:
        time = datetime.fromisoformat(word)
    except ValueError as exc:
        raise MinutchError(
            "--since: expected a segment's name, a time (2026-03-16, 2026-03-16T09:30), 7d, 24h or"
            f" 30m, found {word!r}"
        ) from exc
    # UTC, as all dates that are printed.
    return Since(int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000))


def _as_json(event: Mapping[str, Any], *, with_muted: bool) -> dict[str, Any]:
    """Returns an event without what is null; blocks that are muted only if they are wanted."""
    blocks = [
        {name: value for name, value in block.items() if value and name != "pieces"}
        | {"diff": [[piece["op"], piece["words"]] for piece in block["pieces"]]}
        for block in event["blocks"]
        if with_muted or not block["muted"]
    ]
    found = {name: value for name, value in event.items() if value is not None} | {"blocks": blocks}
    found["time"] = f"{event['time']:%Y-%m-%dT%H:%M:%SZ}"
    return found


def _show(
    events: pl.DataFrame, told: pl.DataFrame, context: JobContext, *, with_muted: bool
) -> None:
    """Prints events by segment, those that are told, or all; then the number of the others."""
    bold = BOLD if context.colour else ""
    quiet = events.filter(pl.col("kind") == UNCHANGED)
    shown = told if not with_muted else pl.concat([told, quiet]).sort("segment", "url")
    for (segment,), mine in events.group_by("segment", maintain_order=True):
        counts = mine.group_by("kind").len().sort("kind")
        said = ", ".join(f"{count:,} {kind}" for kind, count in counts.iter_rows())
        context.print(f"{segment}: {said}", style=bold)
        for event in shown.filter(segment=segment).iter_rows(named=True):
            _show_event(event, context, with_muted=with_muted)
    if not len(events):
        context.print("Nothing has changed.")
    if len(quiet) and not with_muted:
        context.print(
            f"unchanged: {counted(len(quiet), 'visits')} that found nothing else than what changes"
            " at each visit, or belongs to the site (--all shows it)"
        )


def _show_event(event: Mapping[str, Any], context: JobContext, *, with_muted: bool) -> None:
    counts = f" (+{event['words_added']:,} -{event['words_removed']:,} words)"
    said = f"  {event['kind']:8} {visible_line(event['url'])}"
    said += f" → {visible_line(event['to'])}" if event["to"] else ""
    context.print(said + (counts if event["words_added"] or event["words_removed"] else ""))
    for block in event["blocks"]:
        if block["muted"] and not with_muted:
            continue
        if block["muted"]:
            context.print(f"{'':{_INDENT}}{block['muted']}:", style=DIM if context.colour else "")
        pieces = [(piece["op"], piece["words"]) for piece in block["pieces"]]
        if context.colour:
            _show_coloured(pieces, context)
            continue
        for line in _marked(pieces):
            width = width_of(context.out)
            context.print(f"{'':{_INDENT}}{folded(line, width, _INDENT + 2)}")


def _marked(pieces: list[tuple[str, str]]) -> Iterator[str]:
    """Yields a line of what was, and one of what is; words that changed are between asterisks if
    others stay.
    """
    # Where nothing stays, marks around all words would say nothing.
    is_part = any(op == SAME for op, _ in pieces)
    for kind in (REMOVED, ADDED):
        if any(op == kind for op, _ in pieces):
            words = (
                f"*{visible_line(words)}*" if op == kind and is_part else visible_line(words)
                for op, words in pieces
                if op in (SAME, kind)
            )
            yield f"{kind} {' '.join(words)}"


def _show_coloured(pieces: list[tuple[str, str]], context: JobContext) -> None:
    context.print(" " * _INDENT, end="")
    for op, words in pieces:
        raw(context.out).write(_COLOURS.get(op, ""))
        context.out.write(visible_line(words))
        raw(context.out).write(PLAIN if op in _COLOURS else "")
        context.out.write(" ")
    context.out.write("\n")  # print would clear the line first
