"""Rejects URLs that are longer than the property $id.longest."""

from collections.abc import Mapping

from minutch.conf import Configuration
from minutch.plugin.points import URLFilter


class LengthFilter(URLFilter):
    """The filter."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.longest = conf.get_int("$id.longest", 200)

    def filter(self, url: str) -> str | None:
        """Returns the URL, None to reject it."""
        return url if len(url) <= self.longest else None

    def explain(self, url: str) -> str:
        """Says for `minutch explain` what decides about the URL."""
        return f"$id.longest={self.longest}"
