"""Measures how near a fetch of many hosts comes to what politeness, latency and its list permit.

    python -m tests.benchmarks.broad [--cases 2k 20k-hostile …] [--quick] [-D name=value]
                                     [--limit SECONDS] [--places N] [--folder DIR]

A seeded web with names of its own is served by a process beside. For each case its URLs are
injected and generated, then `minutch fetch` runs with the defaults and the delay of the case, and
the server's record of all requests is compared with the bound, and audited. Prints Markdown for
each case, then the figures of all as a table and as a line of JSON. Exit code 1 if a request was
impolite. The whole list takes an hour, --quick less than a minute.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.benchmarks.broad.cases import CASES, QUICK
from tests.benchmarks.broad.measuring import Options, Result, measure
from tests.benchmarks.broad.tables import number, table
from tests.benchmarks.measure import Failed


def overview(results: dict[str, Result]) -> str:
    """All figures of all cases."""
    names = list(dict.fromkeys(name for result in results.values() for name in result.figures))
    nothing = float("nan")
    return table(
        ("", *results),
        (
            (
                name,
                *(
                    number(value, 0 if abs(value) >= 100 or value == int(value) else 2)
                    if (value := result.figures.get(name, nothing)) == value
                    else ""
                    for result in results.values()
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
    parser.add_argument("--quick", action="store_true", help="small cases, less than a minute")
    parser.add_argument("-D", dest="properties", action="append", default=[], metavar="name=value")
    parser.add_argument(
        "--limit", type=float, default=0.0, help="seconds for a fetch; 0: twice the bound, and 60"
    )
    parser.add_argument(
        "--places",
        type=int,
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
    results: dict[str, Result] = {}
    failed = False
    for case in chosen:
        try:
            result = results[case.name] = measure(case, options)
        except Failed as exc:
            print(f"{case.name}: {exc}", file=sys.stderr)
            failed = True
        else:
            print(result.text, end="\n\n", flush=True)
    print(overview(results))
    print(json.dumps({"broad": {name: result.figures for name, result in results.items()}}))
    return 1 if failed or not all(result.polite for result in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
