"""Measures how near a fetch of many hosts comes to what politeness, latency and its list permit.

    python -m tests.benchmarks.broad [--cases 2k 20k-hostile …] [--quick] [-D name=value]
                                     [--limit SECONDS] [--places N] [--folder DIR]

A seeded web with names of its own is served by a process beside. For each case its URLs are
injected and generated, then `minutch fetch` runs with the defaults and the delay of the case, and
the server's record of all requests is compared with the bound, and audited. Prints Markdown for
each case, then all figures, those to be reached with a verdict, and a line of JSON. Exit code 1 if
a request was impolite. The whole list takes an hour, --quick a minute.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks.broad.cases import CASES, QUICK, Case
from tests.benchmarks.broad.goals import Figures, verdicts
from tests.benchmarks.broad.measuring import Options, Result, measure
from tests.benchmarks.broad.tables import number, table
from tests.benchmarks.measure import Failed


def reached(figures: Mapping[Case, Figures]) -> str:
    """The figures to be reached."""
    return table(
        ("case", "figure", "found", "to reach", ""),
        (
            (one.case, one.figure, number(one.found, 2), one.goal, "yes" if one.reached else "NO")
            for one in verdicts(figures)
        ),
    )


def overview(results: Mapping[str, Figures]) -> str:
    """All figures of all cases."""
    names = list(dict.fromkeys(name for figures in results.values() for name in figures))
    nothing = float("nan")
    return table(
        ("", *results),
        (
            (
                name,
                *(
                    number(value, 0 if abs(value) >= 100 or value == int(value) else 2)
                    if (value := figures.get(name, nothing)) == value
                    else ""
                    for figures in results.values()
                ),
            )
            for name in names
        ),
    )


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.broad", description=(__doc__ or "").split("\n")[0]
    )
    by_name = {case.name: case for case in (*CASES, *QUICK)}
    parser.add_argument(
        "--cases", nargs="+", choices=by_name, metavar="CASE", help=", ".join(by_name)
    )
    parser.add_argument("--quick", action="store_true", help="small cases, a minute")
    parser.add_argument("-D", dest="properties", action="append", default=[], metavar="name=value")
    parser.add_argument(
        "--limit",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="seconds for a fetch; 0: twice the bound, and 60",
    )
    parser.add_argument(
        "--places",
        type=int,
        metavar="N",
        default=0,
        help="requests that the fetch may have in progress, if known",
    )
    parser.add_argument("--folder", type=Path, help="where crawls and logs of requests are kept")
    given = parser.parse_args()
    chosen = [by_name[name] for name in given.cases or ()] or (QUICK if given.quick else CASES)
    options = Options(
        dict(one.split("=", 1) for one in given.properties),
        given.limit,
        given.places,
        given.folder and given.folder.absolute(),
    )
    results: dict[Case, Result] = {}
    failed = False
    for case in chosen:
        try:
            result = results[case] = measure(case, options)
        except Failed as exc:
            print(f"{case.name}: {exc}", file=sys.stderr)
            failed = True
        else:
            print(result.text, end="\n\n", flush=True)
    figures = {case: result.figures for case, result in results.items()}
    print(overview({case.name: found for case, found in figures.items()}), end="\n\n")
    print(reached(figures))
    print(json.dumps({"broad": {case.name: found for case, found in figures.items()}}))
    return 1 if failed or not all(result.polite for result in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
