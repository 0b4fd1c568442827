"""Writes an explanation as lines of plain words. Pure: no I/O

Whatever comes from pages, hosts and files is written with its control characters visible, each on a
line of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from minutch.cycle.parse.robotsdirectives import forbids_index
from minutch.inspect.explain.facts import (
    Explanation,
    FilterAnswer,
    NormalForm,
    Overview,
    OverviewLine,
    ReferringLink,
    ReferringSegment,
    RobotsFacts,
    SegmentVisit,
    UseFacts,
    date,
    interval,
    seen_from,
)
from minutch.inspect.explain.visits import FETCHED, LINK, LINKED, LISTED, left_out_words
from minutch.inspect.query.statements import EVERYONE, UNSAID
from minutch.processwide import command_line
from minutch.terminal import agreeing, counted, folded, folded_command, visible_line

_LABEL: Final = 14
_LABELLED: Final = re.compile(r" *\S(?:\S| (?! )){0,15} {2,}| {5,}")
"""A label and the blanks behind it, or those in its place."""
_ALL: Final = "all scopes"
_SUCCESSES: Final = range(200, 300)
Lines = Iterator[str]


def explanation_lines(found: Explanation, width: int | None = None) -> Lines:
    """Yields all lines about a URL, by sections, in a width if there is one."""
    yield visible_line(found.url)
    if found.given != found.url:
        yield visible_line(f"  asked for as {found.given}")
    yield ""
    yield from (_fit(visible_line(f"  {line}"), width) for line in summary_lines(found))
    sections = {
        "Record": _record(found),
        "Due": _due(found),
        "Next fetch list": _generate(found),
        "Fetch": _fetch(found),
        "URL": _url(found.forms, found.filters),
        "History": _history(found),
        "Use of it": map(_use, found.rights),
        "Links to it": _links(found),
        "Same content": iter(found.duplicates),
        "Canonical link": iter(() if found.twin is None else (found.twin.text,)),
    }
    for title, lines in sections.items():
        listed = list(lines)
        if listed:
            yield ""
            yield title
            yield from (_fit(visible_line(f"  {line}"), width) for line in listed)


def _fit(line: str, width: int | None) -> str:
    """Returns a line in a width: what goes on does so below the text behind its label."""
    if width is None or len(line) <= width:
        return line
    label = _LABELLED.match(line)
    if label is None:
        return f"  {folded(line, width, 4)}"
    return label[0] + folded(line[label.end() :], width, label.end())


def summary_lines(found: Explanation) -> Lines:
    """Yields the answer in short: would it be fetched now, why not, what would change that?"""
    waiting = [visit.segment for visit in found.visits if visit.state == LISTED]
    if found.unknown is not None:
        yield f"Not in the CrawlDb: {found.unknown.text}"
        yield f"To bring it in: {found.unknown.remedy}"
        return
    pending = [visit for visit in found.visits if visit.in_crawldb is False]
    if waiting:
        yield f"In the fetch list of segment {waiting[-1]}, which is not fetched yet"
    elif pending:
        yield f"Fetched in segment {pending[-1].segment}, which updatedb has not brought in yet"
    generate = found.generate
    if generate is None:
        return
    if generate.taken and found.fetch.asks:
        yield f"Would be fetched next: {generate.text}"
    elif generate.taken:
        yield f"Would be in the next fetch list, but not asked for: {found.fetch.text}"
        yield f"To change that: {found.fetch.remedy}"
    else:
        yield f"Would not be fetched next: {generate.text}"
        yield f"To change that: {generate.remedy}"
        if not found.fetch.asks:
            yield f"And then it would not be asked for: {found.fetch.text}"


def _say(label: str, text: object) -> str:
    return f"{label:<{_LABEL}} {text}"


def _record(found: Explanation) -> Lines:
    entry = found.entry
    if entry is None:
        return
    yield _say("status", f"{entry.status}: {entry.meaning}")
    if entry.why:
        yield _say("why", entry.why)
    yield _say("retries", f"{entry.retries} of {entry.max_retries} (db.fetch.retry.max)")
    if entry.modified_time is not None:
        yield _say("modified", seen_from(entry.modified_time, found.now))
    score = found.score
    if score is not None:
        rest = (
            f", {score.rest:g} of its own (injected, or from segments that are gone)"
            if score.rest
            else ""
        )
        where = f": {score.from_links:g} from links{rest}" if found.leads.looked else ""
        yield _say(
            "score", f"{score.score:g}{where}; {', '.join(score.filters) or 'no scoring filter'}"
        )
    if entry.signature:
        yield _say("signature", entry.signature)
    for name, value in entry.metadata.items():
        yield _say("metadata", f"{name} = {value}")


def _due(found: Explanation) -> Lines:
    due, entry = found.due, found.entry
    if due is None or entry is None:
        return
    yield _say("due", seen_from(due.due, found.now))
    yield _say("interval", interval(entry.fetch_interval))
    by = f"{due.schedule}, by segment {due.segment}" if due.segment else due.schedule
    yield _say("schedule", by)
    for step in due.steps:
        yield _say(
            "", step.text if step.seconds is None else f"{step.text}: {interval(step.seconds)}"
        )
    if due.note:
        yield _say("", due.note)


def _generate(found: Explanation) -> Lines:
    generate = found.generate
    if generate is None:
        return
    yield _say("taken" if generate.taken else "left out", f"{generate.text} [{generate.reason}]")
    if generate.remedy:
        yield _say("change", generate.remedy)


def _fetch(found: Explanation) -> Lines:
    fetch, host = found.fetch, found.host
    yield _say("asks" if fetch.asks else "does not ask", f"{fetch.text} [{fetch.reason}]")
    yield from _robots(found.robots, found.now)
    yield _say(
        "queue",
        f"{host.queue or 'none'} ({host.queue_mode}), {host.protocol or 'no protocol plugin'}",
    )
    side = "" if host.threads == 1 else f", {host.threads} at a time"
    yield _say("pause", f"{host.delay / 1000:g} s between requests{side}")
    if host.busy_until is not None:
        yield _say("at rest", f"the host asked to be left alone until {date(host.busy_until)}")
    if host.back_off > 0 or host.max_exceptions >= 0:
        most = (
            f"given up after {host.max_exceptions} failures"
            if host.max_exceptions >= 0
            else "never given up"
        )
        yield _say(
            "back-off",
            f"{host.back_off / 1000:g} s more after a failure, doubled each time; {most}",
        )
    if host.addresses:
        guard = host.refused_address or (
            "the address guard lets it pass" if host.protocol else "nobody asks for it"
        )
        yield _say("address", f"{', '.join(host.addresses)}: {guard}")
    if host.max_count > 0:
        yield _say(
            "limit",
            f"{counted(host.max_count, 'pages')} of a host in a fetch list (generate.max.count)",
        )
    if host.known:
        yield _say("hostdb", host.known)


def _robots(robots: RobotsFacts, now: int) -> Lines:
    where = robots.url or "robots.txt"
    if robots.fetched is None:
        yield _say("robots.txt", robots.note)
        return
    age = interval((now - robots.fetched) / 1000)
    yield _say("robots.txt", f"{where} (HTTP {robots.code}, {age} old): {robots.verdict}")
    if robots.line:
        yield _say("", f"line {robots.line}: {robots.rule}")
    elif robots.code in _SUCCESSES:
        yield _say("", f"no line of it speaks of this URL to {', '.join(robots.agents)}")
    if robots.crawl_delay is not None:
        yield _say("", f"Crawl-delay {robots.crawl_delay / 1000:g} s")
    if robots.note:
        yield _say("", robots.note)


def _url(forms: Iterable[NormalForm], filters: Iterable[FilterAnswer]) -> Lines:
    forms = tuple(forms)
    for form in forms:
        scopes = _ALL if len(forms) == 1 else ", ".join(form.scopes)
        by = f" ({', '.join(form.changed_by)})" if form.changed_by else ""
        yield _say("normal form", f"{form.url or form.error or 'dropped'}{by}: {scopes}")
    for each in filters:
        rule = f": {each.rule}" if each.rule else ""
        yield _say(
            "filter", f"{each.filter} {'lets it pass' if each.passed else 'rejects it'}{rule}"
        )


def _history(found: Explanation) -> Lines:
    for visit in found.visits:
        yield from _visit(visit)


def _visit(visit: SegmentVisit) -> Lines:
    if visit.state == LISTED:
        yield f"{visit.segment}  in the fetch list, not fetched yet"
        return
    what = visit.reason or visit.protocol
    code = f"HTTP {visit.code}" if visit.code is not None and f"HTTP {visit.code}" != what else ""
    size = counted(visit.size, "bytes") if visit.size is not None else ""
    speed = f"{visit.response_ms} ms" if visit.response_ms is not None else ""
    state = {FETCHED: visit.status, LINKED: "found by a redirect"}.get(visit.state, "not asked for")
    facts = ", ".join(filter(None, (what, code, size, visit.content_type, speed)))
    yield f"{visit.segment}  {date(visit.time or 0)}  {state}{': ' if facts else ''}{facts}"
    inside = " " * len(visit.segment)
    for hop in visit.redirects:
        yield f"{inside}  → {hop.url}{'  ' if hop.status else ''}{hop.status}"
    if visit.digest:
        yield f"{inside}  digest {visit.digest}"
    if visit.parse:
        title = f"title: {visit.title}" if visit.title else "no title"
        yield f"{inside}  parse {visit.parse}, {counted(visit.outlinks or 0, 'links')}, {title}"
        if visit.robots:
            is_out = forbids_index(visit.robots, frozenset(), 0)
            left_out = ": title and text are left out" if is_out else ""
            yield f"{inside}  robots {visit.robots}{left_out}"
    for name, value in visit.headers.items():
        yield f"{inside}  {name}: {value}"
    if visit.in_crawldb is False:
        yield f"{inside}  not in the CrawlDb yet: run updatedb with it"


def _use(said: UseFacts) -> str:
    if said.verdict == UNSAID:
        return f"nothing is decided by {said.statement} ({said.source})"
    uses = f"{', '.join(said.uses[:-1])} and {said.uses[-1]}".removeprefix(" and ")
    to = "everybody" if said.agent == EVERYONE else said.agent
    verb = f"{agreeing(len(said.uses), 'are')} {said.verdict}"
    return f"{uses} {verb} to {to}: {said.statement} ({said.source})"


def _links(found: Explanation) -> Lines:
    referrers = found.leads
    for link in referrers.links:
        yield _link(link)
    if referrers.total > len(referrers.links):
        yield (
            f"… and {referrers.total - len(referrers.links):,} more: "
            + command_line(f"readlinkdb {found.crawl}/linkdb -url {found.url}")
        )
    for link in referrers.redirects:
        yield f"{link.from_url} redirects to it (segment {link.segment})"
    yield from map(_found, referrers.found)
    if (
        referrers.looked
        and not (referrers.links or referrers.redirects or referrers.found)
        and found.entry is not None
    ):
        yield "none: it was injected, or the segments that led to it are gone"
    for words in left_out_words(referrers.left_out):
        yield f"{words}: one of those may lead to it"


def _link(link: ReferringLink) -> str:
    words = f" with the words “{link.anchor}”" if link.anchor else " without words"
    return f"{link.from_url}{words}{f' (first in segment {link.segment})' if link.segment else ''}"


def _found(found: ReferringSegment) -> str:
    links = counted(found.links, "links" if found.seen_as == LINK else "redirects")
    return f"segment {found.segment}: {links}, score {found.score:g}"


def overview_lines(found: Overview, width: int | None = None) -> Lines:
    """Yields all lines about a crawl, each with its count, and below it the command that shows
    more; in a width if there is one.
    """
    yield visible_line(
        f"{found.crawl}: {counted(found.urls, 'URLs')}, {counted(found.segments, 'segments')}"
    )
    sections = {
        "What is left": found.left,
        "What the next round would fetch": found.next,
        "What came of the last round": found.last,
        "What is cut or left out": found.cut,
        "What is slow": found.slow,
        "What is growing": found.growing,
    }
    for title, lines in sections.items():
        if lines:
            yield ""
            yield title
            yield from _counted(lines, width)
    if found.settings:
        yield ""
        yield "What is set"
        for source in dict.fromkeys(setting.source for setting in found.settings):
            yield f"  {folded(visible_line(source), width, 2)}"
            for one in found.settings:
                if one.source == source:
                    text = visible_line(f"{one.name} = {one.value}")
                    yield f"    {folded(text, width, 6)}"


def _counted(lines: Iterable[OverviewLine], width: int | None) -> Lines:
    lines = tuple(lines)
    digits = max(len(f"{line.count:,}") for line in lines)
    at, below = digits + 4, digits + 6
    for line in lines:
        yield f"  {line.count:>{digits},}  {folded(visible_line(line.text), width, at)}"
        yield f"{'':{below}}{folded_command(visible_line(line.more), width, below)}"
