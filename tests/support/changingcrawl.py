"""A made-up crawl of pages that change by chance, each at a rate of its own, and that were fetched
again and again.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from minutch.cycle.segment.store import Segment, part_writer
from minutch.hadoop.formats.writables import Text
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import PROTO_STATUS_KEY, Metadata
from minutch.records.parsedata import ParseData, ParseStatus
from minutch.records.protocol import SUCCESS, ProtocolStatus
from tests.support.crawldbs import DAY, NOW, write_db

INTERVAL = 30


@dataclass
class ChangingCrawl:
    """`rates` are changes a day by URL; fetches come every INTERVAL days, the last one at NOW."""

    folder: Path
    rates: Mapping[str, float]
    fetches: int = 4
    seed: int = 1
    scores: Mapping[str, float] = field(default_factory=dict)
    parts: int = 2

    def make(self) -> Path:
        """Write segments and a CrawlDb; returns the folder."""
        chance = random.Random(self.seed)
        versions = dict.fromkeys(sorted(self.rates, key=str.encode), 0)
        modified: dict[str, int] = {}
        statuses: dict[str, int] = {}
        for number in range(self.fetches):
            time = NOW - (self.fetches - 1 - number) * INTERVAL * DAY
            for url, rate in self.rates.items():
                changed = number == 0 or chance.random() >= 2.718281828459045 ** (-rate * INTERVAL)
                statuses[url] = (
                    status.STATUS_DB_FETCHED if changed else status.STATUS_DB_NOTMODIFIED
                )
                if changed:
                    versions[url] += 1
                    modified[url] = time
            self._segment(f"{20260101000000 + number}", time, versions)
        entries = [
            (
                url,
                CrawlDatum(
                    statuses[url],
                    INTERVAL * 86_400,
                    self.scores.get(url, 1.0),
                    NOW + INTERVAL * DAY,
                    modified[url],
                ),
            )
            for url in versions
        ]
        write_db(self.folder / "crawldb", entries, parts=self.parts)
        return self.folder

    def _segment(self, name: str, time: int, versions: Mapping[str, int]) -> None:
        segment = Segment(self.folder / "segments" / name)
        segment.path.mkdir(parents=True)
        with (
            segment.writing(("crawl_fetch", "parse_data")) as directory,
            part_writer(directory, "crawl_fetch", 0) as fetched,
            part_writer(directory, "parse_data", 0) as parsed,
        ):
            for url, version in versions.items():
                datum = CrawlDatum(status.STATUS_FETCH_SUCCESS, fetch_time=time)
                datum.metadata[Text(PROTO_STATUS_KEY)] = ProtocolStatus(SUCCESS)
                fetched(url, datum)
                digest = Metadata.of({"nutch.content.digest": f"{version:032x}"})
                parsed(url, ParseData(ParseStatus(1, 0, []), "", [], digest, Metadata.of({})))
