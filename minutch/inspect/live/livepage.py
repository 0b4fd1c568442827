"""Makes the live page: a `Watch` in, HTML out. Pure.

It is complete without scripts, and reloads itself every few seconds. With scripts it replaces
what has changed (elements with `data-live`). All texts go through `markup`, which escapes them;
POLICY says what a page may do.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Final

from minutch.cycle.fetch.ledger import OUTCOMES
from minutch.cycle.fetch.snapshot import Snapshot
from minutch.cycle.fetch.watch import Round, Watch
from minutch.job import time_text
from minutch.web.htmlbuilder import Child, Markup, element, joined

REFRESH: Final = 5
"""Seconds after which a browser without scripts loads the page again."""
STYLE: Final = files("minutch.inspect.live").joinpath("live.css").read_text(encoding="utf-8")
SCRIPT: Final = files("minutch.inspect.live").joinpath("live.js").read_text(encoding="utf-8")
_CHART_HEIGHT: Final = 100
_SIZES: Final = ("B", "KB", "MB", "GB", "TB")


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


POLICY: Final = (
    f"default-src 'none'; style-src {_source(STYLE)}; script-src {_source(SCRIPT)}; connect-src"
    " 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def page(watch: Watch) -> Markup:
    """Returns the page."""
    state, rounds = watch.fetch, list(watch.rounds)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("noscript", element("meta", http_equiv="refresh", content=str(REFRESH))),
        element("title", f"{_short(watch, state)} · minutch {watch.title}"),
        element("style", Markup(STYLE)),
    )
    header = element(
        "header",
        element("h1", "minutch ", element("bdi", watch.title)),
        _live("p", "state", *_state(watch), class_="state"),
        element(
            "p", "The job has ended, or does not answer.", id="gone", class_="gone", hidden=True
        ),
    )
    main = element(
        "main",
        _live("div", "controls", _controls(watch)),
        element("h2", "Now"),
        _live("div", "now", *_now(watch, state)),
        element("h2", "Pages a second"),
        _live("div", "chart", _chart(list(watch.pages))),
        element("h2", "Rounds") if watch.can_stop else None,
        _rounds(rounds) if watch.can_stop else None,
        *_hosts(watch),
    )
    footer = element(
        "footer", element("a", "The same for Prometheus", href="/metrics"), "; times are UTC."
    )
    body = element("body", header, main, footer, element("script", Markup(SCRIPT)))
    return joined(Markup("<!DOCTYPE html>"), element("html", head, body, lang="en"))


def _live(tag: str, name: str, *children: Child, class_: str | None = None) -> Markup:
    """Makes an element that the script keeps up to date."""
    return element(tag, *children, id=name, class_=class_, data_live=True)


# -- the current step ------------------------------------------------------------------------------


def _short(watch: Watch, state: Snapshot | None) -> str:
    if watch.paused:
        return "paused"
    if state is not None:
        return f"{state.done:,}" if state.total is None else f"{state.done:,} of {state.total:,}"
    return watch.step or "running"


def _state(watch: Watch) -> Iterable[Child]:
    if watch.paused:
        text = (
            "Pauses when this step has ended. "
            if _is_other_step(watch)
            else "Paused: nothing new is fetched. "
        )
        yield element("span", text, class_="paused")
    if watch.stopping:
        yield element("span", "Stops after this round. ", class_="stopping")
    if not (watch.paused or watch.stopping):
        yield "Running. "
    seconds = (watch.clock.now() - watch.started) / 1000
    yield element(
        "span",
        f"Since {_time(watch.started, '%Y-%m-%d %H:%M')}, {time_text(seconds)}",
        class_="quiet",
    )


def _is_other_step(watch: Watch) -> bool:
    """Returns True if a step runs that can't be paused midway, as a fetch or that of sitemaps
    can.
    """
    return watch.step not in ("", "sitemap") and watch.fetch is None


def _controls(watch: Watch) -> Markup:
    def button(path: str, text: str, style: str | None = None) -> Markup:
        return element("button", text, type="submit", formaction=path, class_=style)

    buttons = [button("/resume", "Resume") if watch.paused else button("/pause", "Pause")]
    if watch.can_stop:
        wanted = ("/go-on", "Don't stop") if watch.stopping else ("/stop", "Stop after this round")
        buttons.append(button(*wanted, "second"))
    return element("form", *buttons, method="post")


def _now(watch: Watch, state: Snapshot | None) -> Iterable[Child]:
    step = watch.step or ("fetch" if state is not None else "")
    if step:
        seconds = watch.clock.monotonic() - watch.step_since
        words = [f"{watch.place}: " if watch.place else "", step, f", for {time_text(seconds)}"]
        yield element("p", "".join(words))
    else:
        yield element("p", "Waits to be resumed." if watch.paused else "Between two steps.")
    progress = watch.progress
    if state is not None:
        yield from _bar(state.done, state.total, "Pages")
        yield element("dl", *_figures(state))
        yield _outcomes(watch)
    elif progress is not None and progress.done:
        total = progress.known_total
        yield from _bar(progress.done, total, progress.unit)
        of = "" if total is None else f" of {total:,}"
        yield element(
            "p", f"{progress.done:,}{of} {progress.unit}, {progress.rate:,.0f}/s", class_="quiet"
        )


def _bar(done: int, total: int | None, what: str) -> Iterable[Child]:
    if total:
        yield element("progress", max=str(total), value=str(min(done, total)), aria_label=what)


def _figures(state: Snapshot) -> Iterable[Markup]:
    seconds = max(state.seconds, 0.001)
    of = "" if state.total is None else f" of {state.total:,}"
    yield _figure("URLs done", f"{state.done:,}{of}")
    yield _figure(
        "Pages a second", f"{state.pages_last_second:,}, mean {state.pages / seconds:,.1f}"
    )
    yield _figure(
        "Bytes a second", f"{_size(state.bytes_last_second)}, mean {_size(state.bytes / seconds)}"
    )
    yield _figure("Content", _size(state.bytes))
    yield _figure("Requests in flight", f"{state.active:,} of {state.threads:,}")
    yield _figure("Oldest of them", f"{state.oldest_wait:,.1f} s")
    yield _figure(
        "Mean answer", f"{state.request_ms / state.requests:,.0f} ms" if state.requests else "–"
    )
    yield _figure(
        "Queues", f"{state.queues:,}" + (f", {state.blocked:,} given up" if state.blocked else "")
    )
    yield _figure("URLs in queues", f"{state.waiting:,}")
    yield _figure("Longest rest", f"{max(0.0, state.longest_rest):,.1f} s")
    yield _figure("Errors", f"{state.errors:,}")


def _figure(name: str, value: str) -> Markup:
    return element("div", element("dt", name), element("dd", value))


def _outcomes(watch: Watch) -> Markup | None:
    details = watch.details
    if details is None or not details.outcomes:
        return None
    pairs = sorted(details.outcomes.items())
    text = ", ".join(f"{OUTCOMES[number].label} {count:,}" for number, count in pairs if count)
    return element("p", f"So far: {text}", class_="quiet")


def _chart(pages: Sequence[int]) -> Markup:
    if len(pages) < 2:
        return element("p", "Nothing fetched yet.", class_="quiet")
    most = max(1, *pages)
    points = " ".join(
        f"{x},{_CHART_HEIGHT * (1 - value / most):.1f}" for x, value in enumerate(pages)
    )
    text = f"the last {time_text(len(pages))}: at most {most:,}, {pages[-1]:,} now"
    line = element("polyline", points=points)
    box = f"0 -4 {len(pages) - 1} {_CHART_HEIGHT + 8}"
    svg = element(
        "svg",
        line,
        viewBox=box,
        preserveAspectRatio="none",
        role="img",
        aria_label=f"Pages a second, {text}",
    )
    return joined(svg, element("p", text[0].upper() + text[1:], class_="quiet"))


# -- tables ----------------------------------------------------------------------------------------


def _rounds(rounds: Sequence[Round]) -> Markup:
    rows = [
        (index == 0 and each.title, step.name, f"{step.seconds:,.1f}", step.result)
        for each in reversed(rounds)
        for index, step in enumerate(each.steps)
    ]
    return _table(
        "rounds", "Rounds", ("Round", "Step", "# Seconds", "Result"), rows, "No step has ended yet."
    )


def _hosts(watch: Watch) -> Iterable[Markup]:
    details = watch.details
    slow = [] if details is None else details.slowest
    yield element("h2", "Slow hosts")
    yield _table(
        "slow",
        "Slow hosts",
        ("Host", "# Requests", "# Mean ms", "# Longest ms", "# Errors"),
        [
            (name, f"{t.requests:,}", f"{t.mean_ms:,.0f}", f"{t.longest_ms:,}", f"{t.errors:,}")
            for name, t in slow
        ],
        "None yet.",
    )
    queues = [] if details is None or watch.fetch is None else details.longest
    yield element("h2", "Longest queues")
    yield _table(
        "queues",
        "Longest queues",
        ("Host", "# Waiting", "# In flight", "# Rests s", "# Delay s"),
        [
            (
                q.id,
                f"{q.waiting:,}",
                f"{q.in_progress:,}",
                f"{q.rest / 1000:,.1f}",
                f"{q.delay / 1000:,.1f}",
            )
            for q in queues
        ],
        "Nothing waits.",
    )
    failures = [] if details is None else details.failures
    yield element("h2", "Last errors")
    yield _table(
        "errors",
        "Last errors",
        ("Time", "URL", "Reason"),
        [(_time(failure.time), failure.url, failure.text) for failure in failures],
        "None yet.",
    )


def _table(
    name: str, label: str, columns: Sequence[str], rows: Sequence[Sequence[str | bool]], empty: str
) -> Markup:
    """Makes a table; names of columns of numbers begin with a `#`."""
    styles = ["number" if column.startswith("# ") else "name" for column in columns]
    head = [
        element("th", column.removeprefix("# "), scope="col", class_=style)
        for column, style in zip(columns, styles, strict=True)
    ]
    body = [
        element("tr", *(_cell(value, style) for value, style in zip(row, styles, strict=True)))
        for row in rows
    ] or [element("tr", element("td", empty, colspan=str(len(columns)), class_="quiet"))]
    table = element("table", element("thead", element("tr", *head)), _live("tbody", name, *body))
    return element("div", table, class_="wide", tabindex="0", role="region", aria_label=label)


def _cell(value: str | bool, style: str) -> Markup:
    return element("td", element("bdi", value) if isinstance(value, str) else None, class_=style)


def _size(count: float) -> str:
    for unit in _SIZES:
        if count < 1024 or unit == _SIZES[-1]:
            break
        count /= 1024
    return f"{count:,.0f} {unit}" if unit == "B" or count >= 100 else f"{count:,.1f} {unit}"


def _time(milliseconds: int, form: str = "%H:%M:%S") -> str:
    return time.strftime(form, time.gmtime(milliseconds / 1000))
