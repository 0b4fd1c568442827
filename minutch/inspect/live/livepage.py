"""Makes the live page: a `Watch` in, HTML out. Pure.

It is complete without scripts, and reloads itself every few seconds. With scripts it replaces
what has changed (elements with `data-live`). Whatever comes from the web is text.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from minutch.cycle.fetch.ledger import OUTCOMES, Outcome
from minutch.cycle.fetch.stats import Snapshot
from minutch.cycle.fetch.watch import Watch, WatchedRound, time_left
from minutch.job import time_text
from minutch.terminal import counted, visible_line
from minutch.web import cells, frame, plots
from minutch.web.cells import Column
from minutch.web.frame import Child, Markup, element, joined
from minutch.web.plots import Series

REFRESH: Final = 5
"""Seconds after which a browser without scripts loads the page again."""
WINDOWS: Final = {1: 5, 10: 10, 60: 60}
"""Minutes that the plot can show, and the seconds of one of its columns."""
USUAL: Final = 10
SCRIPT: Final = frame.resource("live.js", __package__)
POLICY: Final = frame.policy(
    SCRIPT, "connect-src 'self'; form-action 'self'; frame-ancestors 'none'"
)

e = element


def page(watch: Watch, minutes: int = USUAL) -> str:
    """Returns the page; the plot shows the last `minutes`."""
    state, rounds = watch.fetch, list(watch.rounds)
    title = visible_line(watch.title)
    header = (
        e("h1", "minutch ", e("bdi", title)),
        _live("p", "state", *_state(watch)),
        e("p", "The job has ended, or does not answer.", id="gone", class_="bad", hidden=True),
        _live("div", "controls", _controls(watch)),
    )
    windows = [
        e(
            "a",
            counted(each, "minutes"),
            href=f"/?minutes={each}",
            aria_current="true" if each == minutes else None,
        )
        for each in WINDOWS
    ]
    speed = (
        _live("div", "chart", _chart(watch, rounds, minutes)),
        frame.navigation("Time that the plot shows", windows),
    )
    content = (
        frame.section("now", "Now", _live("div", "figures", *_now(watch, state))),
        frame.section("speed", "Speed", *speed),
        frame.section("rounds", "Rounds", _live("div", "steps", *_rounds(rounds)))
        if watch.can_stop
        else None,
        frame.section("hosts", "Hosts and errors", *_hosts(watch)),
    )
    return frame.page(
        f"{_short(watch, state)} · minutch {title}",
        header,
        content,
        joined(e("a", "The same for Prometheus", href="/metrics"), "; times are UTC."),
        head=e("noscript", e("meta", http_equiv="refresh", content=str(REFRESH))),
        script=SCRIPT,
    )


def _live(tag: str, name: str, *children: Child) -> Markup:
    """Makes an element that the script keeps up to date."""
    return e(tag, *children, id=name, data_live=True)


# -- the current step ------------------------------------------------------------------------------


def _short(watch: Watch, state: Snapshot | None) -> str:
    if watch.paused:
        return "paused"
    return watch.step or "running" if state is None else _done(state)


def _done(state: Snapshot) -> str:
    return f"{state.done:,}" if state.total is None else f"{state.done:,} of {state.total:,}"


def _state(watch: Watch) -> Iterable[Child]:
    if watch.paused:
        text = (
            "Pauses when this step has ended. "
            if _is_other_step(watch)
            else "Paused: nothing new is fetched. "
        )
        yield e("span", text, class_="warn paused")
    if watch.stopping:
        yield e("span", "Stops after this round. ", class_="warn stopping")
    if not (watch.paused or watch.stopping):
        yield e("strong", "Running. ")
    seconds = (watch.clock.now() - watch.started) / 1000
    yield e(
        "span",
        f"Since {_time(watch.started, '%Y-%m-%d %H:%M')}, {time_text(seconds)}",
        class_="quiet",
    )


def _is_other_step(watch: Watch) -> bool:
    """Returns True if a step runs that can't be paused midway, unlike a fetch or sitemaps."""
    return watch.step not in ("", "sitemap") and watch.fetch is None


def _controls(watch: Watch) -> Markup:
    def button(path: str, text: str, style: str | None = None) -> Markup:
        return e("button", text, type="submit", formaction=path, class_=style)

    buttons = [button("/resume", "Resume") if watch.paused else button("/pause", "Pause")]
    if watch.can_stop:
        wanted = ("/go-on", "Don't stop") if watch.stopping else ("/stop", "Stop after this round")
        buttons.append(button(*wanted, "second"))
    return e("form", *buttons, method="post")


def _now(watch: Watch, state: Snapshot | None) -> Iterable[Child]:
    step = watch.step or ("fetch" if state is not None else "")
    if step:
        seconds = watch.clock.monotonic() - watch.step_since
        words = [f"{watch.place}: " if watch.place else "", step, f", for {time_text(seconds)}"]
        left = "" if state is None or state.paused else time_left(state)
        yield e("p", "".join(words), f", {left}" if left else None)
    else:
        yield e("p", "Waits to be resumed." if watch.paused else "Between two steps.")
    progress = watch.progress
    if state is not None:
        yield from _bar(state.done, state.total, "Pages")
        yield _outcomes(state)
        yield frame.tiles(list(_figures(state)))
    elif progress is not None and progress.done:
        total = progress.known_total
        yield from _bar(progress.done, total, progress.unit)
        of = "" if total is None else f" of {total:,}"
        yield e(
            "p", f"{progress.done:,}{of} {progress.unit}, {progress.rate:,.0f}/s", class_="quiet"
        )


def _bar(done: int, total: int | None, what: str) -> Iterable[Child]:
    if total:
        yield e("progress", max=str(total), value=str(min(done, total)), aria_label=what)


def _outcomes(state: Snapshot) -> Markup:
    """Says how many URLs are done, and what came of them: all counts are of one moment."""
    ends = sorted((number, count) for number, count in state.outcomes.items() if count)
    listed = [f"{count:,} {OUTCOMES[n].label}" for n, count in ends if n != Outcome.FOLLOWED]
    text = f"{_done(state)} URLs done" + (f": {', '.join(listed)}" if listed else "")
    followed = state.outcomes.get(Outcome.FOLLOWED, 0)
    more = f"; besides, {counted(followed, 'links')} followed" if followed else ""
    return e("p", f"{text}{more}.")


def _figures(state: Snapshot) -> Iterable[tuple[str, Child]]:
    seconds = max(state.seconds, 0.001)
    yield (
        "pages a second",
        _with(f"{state.pages_last_second:,}", f"mean {state.pages / seconds:,.1f}"),
    )
    yield (
        "bytes a second",
        _with(cells.size(state.bytes_last_second), f"mean {cells.size(state.bytes / seconds)}"),
    )
    yield "content", cells.size(state.bytes)
    yield "requests in flight", f"{state.active:,} of {state.threads:,}"
    yield "the oldest of them", f"{state.oldest_wait:,.1f} s"
    mean_ms = f"{state.request_ms / state.requests:,.0f} ms" if state.requests else "–"
    yield "mean answer", mean_ms
    yield "failed requests", f"{state.errors:,}"
    given_up = f"{state.blocked:,} given up" if state.blocked else ""
    yield "queues", _with(f"{state.queues:,}", given_up)
    yield "URLs in queues", f"{state.waiting:,}"
    yield "longest rest", f"{max(0.0, state.longest_rest):,.1f} s"


def _with(value: str, more: str) -> Markup:
    return joined(value, e("small", more) if more else None)


def _chart(watch: Watch, rounds: Sequence[WatchedRound], minutes: int) -> Markup:
    """Draws the pages a second of the last minutes, and where rounds began."""
    if not watch.pages:
        return e("p", "Nothing fetched yet.", class_="quiet")
    wide = 1000 * WINDOWS[minutes]
    last, pages = watch.clock.now(), list(watch.pages)
    first = last - 60_000 * minutes
    sums = [0] * (60_000 * minutes // wide)
    for end, count in pages:
        if first < end <= last:
            sums[(end - first - 1) // wide] += count
    series = [Series("pages a second", "fetched", [1000 * count / wide for count in sums])]
    starts = [first + at * wide for at in range(len(sums))]
    turns = [
        (
            100 * (each.began - first) / (last - first),
            visible_line(_name(each).partition(" of ")[0]),
        )
        for each in rounds
        if each.began > first
    ]
    return plots.columns(
        "Pages a second",
        [_time(start) for start in starts],
        series,
        cells.short,
        f"means of {WINDOWS[minutes]} s, until {_time(last)}",
        turns=turns,
        axis=plots.time_axis(first, last),
    )


# -- tables ----------------------------------------------------------------------------------------


def _rounds(rounds: Sequence[WatchedRound]) -> Iterable[Markup]:
    """Shows the round that runs, then those before it, folded."""
    if not rounds:
        yield e("p", "No step has ended yet.", class_="quiet")
        return
    *before, now = rounds
    yield _steps(now)
    for each in reversed(before):
        seconds = time_text(sum(step.seconds for step in each.steps))
        fetched = next((step.result for step in each.steps if step.name == "fetch"), "")
        said = [e("bdi", visible_line(_name(each))), f", {seconds}", fetched and f": {fetched}"]
        yield e(
            "details",
            e("summary", *said, id=f"summary-{each.began}"),
            _steps(each),
            id=f"round-{each.began}",
        )


def _name(each: WatchedRound) -> str:
    return each.title or "Before the first round"


def _steps(each: WatchedRound) -> Markup:
    rows = [{"name": one.name, "seconds": one.seconds, "result": one.result} for one in each.steps]
    columns = [
        cells.text("Step", "name"),
        Column("Seconds", lambda row: f"{row['seconds']:,.1f}", lambda row: row["seconds"]),
        cells.text("Result", "result"),
    ]
    return cells.table(visible_line(_name(each)), rows, columns, empty="No step has ended yet.")


def _hosts(watch: Watch) -> Iterable[Markup]:
    details = watch.details
    slow: list[dict[str, Any]] = [
        {"host": name, "times": times} for name, times in (details.slowest if details else [])
    ]
    queues = details.longest if details and watch.fetch is not None else []
    host = cells.text("Host", "host")
    asof = f"As of {_time(details.time)}." if details else ""
    yield e("p", asof, id="asof", data_live=True, class_="quiet")
    yield cells.table(
        "Slow hosts",
        slow,
        [
            host,
            _number("Requests", "times", lambda times: f"{times.requests:,}"),
            _number("Mean", "times", lambda times: cells.milliseconds(times.mean_ms)),
            _number("Longest", "times", lambda times: cells.milliseconds(times.longest_ms)),
            _number("Errors", "times", lambda times: f"{times.errors:,}"),
        ],
        empty="None yet.",
        live="slow",
    )
    yield cells.table(
        "Longest queues",
        [{"host": queue.id, "queue": queue} for queue in queues],
        [
            host,
            _number("Waiting", "queue", lambda queue: f"{queue.waiting:,}"),
            _number("In flight", "queue", lambda queue: f"{queue.in_progress:,}"),
            _number("Rests", "queue", lambda queue: cells.milliseconds(queue.rest)),
            _number("Delay", "queue", lambda queue: cells.milliseconds(queue.delay)),
        ],
        empty="Nothing waits.",
        live="queues",
    )
    yield cells.table(
        "Last errors",
        [each._asdict() for each in (details.failures if details else [])],
        [
            Column("Time", lambda row: _time(row["time"])),
            cells.text("URL", "url"),
            cells.text("Reason", "text"),
        ],
        stacked=True,
        empty="None yet.",
        live="errors",
    )


def _number(title: str, name: str, shown: Any) -> Column:
    """Makes a column of numbers of an object."""
    return Column(title, lambda row: shown(row[name]), lambda row: None)


def _time(milliseconds: int, form: str = "%H:%M:%S") -> str:
    return time.strftime(form, time.gmtime(milliseconds / 1000))
