"""A seed by Nutch and by this crawler: two crawls, then all jobs over one of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.interop.sidebyside.configurations import SideConfiguration
from tests.interop.sidebyside.crawls import (
    Records,
    by_nutch,
    by_us,
    crawl,
    differences,
    nutch_of,
    stored,
)
from tests.interop.sidebyside.jobs import INDEX, all_jobs
from tests.interop.sidebyside.web import SideWeb


def side_by_side(home: Path, folder: Path, seed: int) -> tuple[int, list[str]]:
    """Crawls the web of a seed with its configuration by both, and runs all jobs over what Nutch
    has stored; returns how many records and lines Nutch has made, and what differs.
    """
    drawn = SideConfiguration.drawn(seed)
    later = drawn.indexing(seed, folder / "jobs" / INDEX)
    later.write(rules := folder / "rules")
    found: list[str] = []
    with SideWeb(seed) as web, nutch_of(home, folder / "java", later) as harness:
        failed, asked = [], []
        for name, step in (
            ("nutch", by_nutch(harness, folder, drawn.properties(web.port))),
            ("minutch", by_us(rules, drawn.properties(web.port))),
        ):
            failed.append(crawl(web, folder / name, drawn, step))
            asked.append(Counter(web.asked))
        properties = later.properties(web.port)
        steps = {
            "nutch": by_nutch(harness, folder, properties),
            "minutch": by_us(rules, properties),
        }
        made: dict[str, tuple[list[str], Records]] = dict.fromkeys(steps, ([], {}))
        if any((folder / "nutch/segments").iterdir()):  # the rules let a seed in
            made = all_jobs(folder / "nutch", folder / "jobs", seed, steps)
    if asked[0] != asked[1]:
        more = [sorted((asked[at] - asked[1 - at]).elements())[:5] for at in (0, 1)]
        found.append(f"asked for by Nutch alone {more[0]}, by minutch alone {more[1]}")
    failed.extend(failures for failures, _ in made.values())
    for theirs, ours in (failed[:2], failed[2:]):
        if theirs != ours:
            found.append(f"failed: Nutch {theirs}, minutch {ours}")
    records = stored(folder / "nutch")
    found += differences(records, stored(folder / "minutch"))
    found += differences(made["nutch"][1], made["minutch"][1])
    return sum(map(len, (*records.values(), *made["nutch"][1].values()))), found
