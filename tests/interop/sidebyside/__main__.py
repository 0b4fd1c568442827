"""Crawls made-up webs with random configurations, by Apache Nutch and by this crawler, and runs
all other jobs over the crawl.

    python -m tests.interop.sidebyside HOME SEED [SEED …]

HOME is an installation of Nutch, such as `tests.benchmarks.nutchhome --all` builds. Of each seed
its configuration is printed, and what differs between both. Some differences are wanted
(docs/compatibility.md): a URL without a protocol plugin is not asked for, and stays as it is.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path

from tests.interop.sidebyside.both import side_by_side
from tests.interop.sidebyside.configurations import SideConfiguration


def main() -> int:
    """The command; exits with 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("seeds", type=int, nargs="+")
    asked = parser.parse_args()
    logging.getLogger("minutch").setLevel(logging.ERROR)
    status = 0
    for seed in asked.seeds:
        drawn = SideConfiguration.drawn(seed)
        with tempfile.TemporaryDirectory() as name:
            count, found = side_by_side(asked.home.absolute(), Path(name), seed)
        status |= bool(found)
        how = "they differ" if found else "the same"
        print(f"{seed}: {count} records, {how}; {dict(drawn.changed)}", flush=True)
        print(*(f"  {line}\n" for line in found), sep="", end="", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
