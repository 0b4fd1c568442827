"""Writes what was measured as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median

from tests.benchmarks.broad.audit import Audit
from tests.benchmarks.broad.rates import Rates, Share
from tests.benchmarks.broad.web import Web

_MOST_VIOLATIONS = 10


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose columns are numbers, but for the first."""
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def number(value: float, digits: int = 0, unit: str = "") -> str:
    """A number, or nothing if there is none."""
    return "" if math.isnan(value) else f"{value:,.{digits}f}{unit}"


def ratio(value: float, by: float) -> str:
    """A quotient, or nothing if there is none."""
    return number(value / by, 2) if by and not math.isnan(value) else ""


def describe(web: Web) -> str:
    """A web in a sentence."""
    plan = web.plan
    hostile = sum(kind != "" for kind in web.kinds)
    return (
        f"{plan.hosts:,} hosts, {hostile:,} of them hostile, with {web.counted_pages:,} pages that"
        f" can be had, the largest {int(web.sizes.max()):,}; delay {plan.delay:g} s, median latency"
        f" {plan.median:g} ms"
    )


def over_time(rates: Rates) -> str:
    """Rates by time."""
    return table(
        (
            "seconds",
            "pages/s",
            "bound",
            "share",
            "share of pages so far",
            "hosts with pages left",
            "they can give",
            "share",
            "requests/s",
            "in flight",
            "cores",
            "with waiting",
            "MB",
        ),
        (
            (
                f"{row.since:g} to {row.until:.0f}",
                number(row.rate, 1),
                number(row.bound, 1),
                ratio(row.rate, row.bound),
                number(row.done, 2),
                f"{row.hosts:,}",
                number(row.possible, 1),
                ratio(row.rate, row.possible),
                number(row.requests, 1),
                number(row.in_flight, 1),
                number(row.cores, 2),
                number(row.wanted, 2),
                number(row.megabytes),
            )
            for row in rates.rows
        ),
    )


def times(rates: Rates) -> str:
    """Times to shares of the pages."""
    return table(
        (
            "pages",
            "seconds",
            "bound",
            "times the bound",
            f"bound at {rates.capacity:,.0f} requests/s (its CPU, one core)",
            "times",
        ),
        (
            (
                f"{share:.0%}",
                number(found, 1),
                number(bound, 1),
                ratio(found, bound),
                number(with_cpu, 1),
                ratio(found, with_cpu),
            )
            for share, found, bound, with_cpu in rates.times
        ),
    )


def shares(rates: Rates) -> str:
    """The shares from the fifth second on."""
    free = [share for share in rates.shares if share.free]
    return table(
        ("share, from the fifth second on", "seconds", "smallest", "median", "≥ 0.9"),
        (
            (name + ending, *_spread(values))
            for ending, some in (("", rates.shares), (", neither places nor CPU the limit", free))
            for name, values in by_measure(some).items()
        ),
    )


def by_measure(shares: Iterable[Share]) -> dict[str, list[float]]:
    """The values of each of the three shares, those that say something."""
    some = list(shares)
    return {
        name: [value for share in some if not math.isnan(value := getattr(share, field))]
        for name, field in (
            ("of the bound's rate", "rate"),
            ("of the bound's pages", "done"),
            ("of what hosts can give", "given"),
        )
    }


def _spread(values: Sequence[float]) -> tuple[str, str, str, str]:
    if not values:
        return "0", "", "", ""
    return (
        f"{len(values):,}",
        number(min(values), 2),
        number(median(values), 2),
        f"{sum(value >= 0.9 for value in values) / len(values):.0%}",
    )


def audited(found: Audit) -> str:
    """The audit, with the first violations."""
    lines = [
        f"Audit: {'polite' if found.passed else 'NOT POLITE'}; {found.requests:,} requests,"
        f" {len(found.violations):,} violations, at most {found.parallel} in parallel on a queue,"
        f" smallest gap {number(1000 * found.excess)} ms from what was promised;"
        f" {found.twice:,} pages answered twice, {found.never:,} never."
    ]
    lines += [f"- {violation}" for violation in found.violations[:_MOST_VIOLATIONS]]
    if len(found.violations) > _MOST_VIOLATIONS:
        lines.append(f"- and {len(found.violations) - _MOST_VIOLATIONS:,} more")
    return "\n".join(lines)
