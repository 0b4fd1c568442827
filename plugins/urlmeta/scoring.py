"""urlmeta: carries the tags of a seed to all pages that are found through it, and to the index.

`urlmeta.tags` names them. Source: org.apache.nutch.scoring.urlmeta.URLMetaScoringFilter.
"""

from __future__ import annotations

from collections.abc import Mapping

from minutch.conf import Configuration

from ..lib_carrying.carrying import CarryingFilter


class URLMetaScoringFilter(CarryingFilter):
    """The scoring filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.from_db = self.from_content = self.from_parse = conf.get_trimmed_strings(
            "urlmeta.tags"
        )
