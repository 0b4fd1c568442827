"""scoring-metadata: carries metadata of a page from the CrawlDb to the pages that it links to.

    scoring.db.md        from the entry of the fetch list to the metadata of the content
    scoring.content.md   from there to the metadata of the parse
    scoring.parse.md     from there to the entries of the links

Each names the keys to carry. Scores stay as they are.
Source: org.apache.nutch.scoring.metadata.MetadataScoringFilter.
"""

from __future__ import annotations

from collections.abc import Mapping

from minutch.conf import Configuration

from ..lib_carrying.carrying import CarryingFilter


class MetadataScoringFilter(CarryingFilter):
    """The scoring filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.from_db = conf.get_trimmed_strings("scoring.db.md")
        self.from_content = conf.get_trimmed_strings("scoring.content.md")
        self.from_parse = conf.get_trimmed_strings("scoring.parse.md")
