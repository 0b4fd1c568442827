"""learn: rules by which a crawl would have asked for less and known as much, with evidence."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any

from minutch import strictjson
from minutch.commands.arguments import Arguments
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.updatedb import UpdateOptions, updatedb
from minutch.errors import ConfigError
from minutch.inspect.learn.learning import Learned, learn
from minutch.inspect.learn.rules import LearnedRule, folder_of, write
from minutch.inspect.query.crawl import CRAWLDB, open_crawl
from minutch.job import JobContext
from minutch.processwide import command_line
from minutch.terminal import counted, folded, visible_line, width_of


def run(arguments: Arguments, context: JobContext) -> int:
    """Runs the command. Exit code 0, whatever was learned."""
    path, is_applied = arguments["crawl"], arguments["--apply"]
    crawl = open_crawl(path)
    conf = context.conf.of_crawl(path).freeze()
    folder = None
    try:
        folder = folder_of(path, conf)
    # Rules are told also where none could be written.
    except ConfigError:
        if is_applied:
            raise
    learned = learn(crawl, context=replace(context, conf=conf))
    said = f"learned {datetime.fromtimestamp(context.clock.now() / 1000, UTC):%Y-%m-%d}"
    done = write(learned.offered, folder, conf, said) if is_applied and folder is not None else []
    waited = _apply_to_waiting(path, context) if done else 0
    if arguments["--json"]:
        written = {id(rule): str(target) for target, rule in done}
        known = [_as_json(rule) | {"written": written.get(id(rule))} for rule in learned.rules]
        counts: dict[str, Any] = {"urls": learned.urls, "pages": learned.pages}
        counts |= {"rules": known, "probes": [*learned.probes]}
        context.print(strictjson.dumps(counts, indent=2))
        return 0
    _show(learned, context)
    for target in dict.fromkeys(target for target, _ in done):
        count = sum(one == target for one, _ in done)
        context.print(f"{counted(count, 'rules')} written to {target}")
    if waited:
        context.print(f"left out, or known by another name: {counted(waited, 'URLs')} that waited")
    if learned.offered and not is_applied:
        context.print(f"Write them:  {command_line(f'learn {quote(str(path))} --apply')}")
    return 0


def _apply_to_waiting(path: Path, context: JobContext) -> int:
    """Makes of the URLs that wait what rules say that were written now; returns how many less there
    are. What was found before would be asked for under its old name otherwise: rules are for links.
    """
    db = CrawlDb(path / CRAWLDB)
    if not db.exists():
        return 0
    before, conf = len(db), context.conf.of_crawl(path).freeze()
    options = UpdateOptions(normalize=True, filtering=True, of_waiting=True)
    updatedb(db.path, [], options, context=replace(context, conf=conf))
    return before - len(CrawlDb(path / CRAWLDB))


def _as_json(rule: LearnedRule) -> dict[str, Any]:
    return {
        "kind": rule.kind,
        "host": rule.host,
        "says": rule.says,
        "evidence": rule.evidence,
        "offered": rule.is_offered,
        "urls": rule.touches,
        "lost": rule.lost,
        "file": rule.file,
        "lines": rule.lines,
        "examples": [{"url": url, "becomes": to} for url, to in rule.examples],
    }


def _show(learned: Learned, context: JobContext) -> None:
    context.print(
        f"{counted(learned.urls, 'URLs')} known, {counted(learned.pages, 'different pages')};"
        f" {counted(len(learned.offered), 'rules')} without a loss"
    )
    width = width_of(context.out)
    for rule in learned.rules:
        context.print(f"\n{rule.kind}: {rule.host}")
        context.print(f"  {folded(rule.says, width, 2)}")
        if rule.is_advice:
            context.print(f"  {folded(rule.evidence, width, 2)}: left to generate.pattern.budget")
            continue
        touched = f"touches {counted(rule.touches, 'URLs')}, loses {counted(rule.lost, 'pages')}"
        context.print(f"  {folded(f'{rule.evidence}; {touched}', width, 2)}")
        for url, to in rule.examples:
            context.print(f"    {visible_line(url)}")
            context.print(f"      {'left out' if to is None else visible_line(to)}")
        context.print(f"  {rule.file}{'' if rule.is_offered else ': not offered'}")
        for line in rule.lines:
            context.print(f"    {visible_line(line.strip())}")
    for probe in learned.probes:
        said = "Unlike URLs say the same. Is it what the host says of all that is not there?"
        context.print(f"\n{said}\nInject this URL, fetch it, and learn again:  {probe}")
