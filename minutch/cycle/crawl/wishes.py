"""Turns what people wish of a crawl of a site, in the words of wget and Scrapy, into Nutch's
properties.

    depth            scoring.depth.max, with scoring-depth in plugin.includes
    include, exclude urlfilter.regex.rules: before, or in place of, what regex-urlfilter.txt accepts
    delay            fetcher.server.delay
    agent            http.agent.name
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.urls.hostname import canonical_host
from minutch.urls.parts import parse


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is wished of a crawl of `urls`."""

    urls: Sequence[str]
    """They may lack their schemes until it is known which one is answered."""
    depth: int | None = None
    """Links from a seed to a page, at most."""
    include: Sequence[str] = ()
    """Regular expressions of which a URL has to match one; the seeds need not."""
    exclude: Sequence[str] = ()
    """Regular expressions of which a URL may match none."""
    delay: float | None = None
    """Seconds between two requests to a host."""
    agent: str | None = None
    """The crawler's name."""

    @property
    def folder(self) -> str:
        """The name of the crawl's folder: the first host. Raises UrlError."""
        first = self.urls[0]
        host = parse(first if "://" in first else f"https://{first}").host
        if not host:
            raise UrlError(f"{self.urls[0]}: no host")
        return canonical_host(host).strip("[]").replace(":", "-")

    def properties(self, conf: Configuration) -> dict[str, str]:
        """Returns the properties to set."""
        found: dict[str, str] = {}
        if self.delay is not None:
            found["fetcher.server.delay"] = f"{self.delay:g}"
        if self.agent is not None:
            found["http.agent.name"] = self.agent
        if self.depth is not None:
            found["scoring.depth.max"] = str(self.depth + 1)  # a seed's is 1
            found["crawl.sitemaps"] = "false"  # what they list is at no depth
            found["plugin.includes"] = f"{conf.get('plugin.includes') or ''}|scoring-depth"
        if self.include or self.exclude:
            found["urlfilter.regex.rules"] = "\n".join(self._rules(conf))
        return found

    def _rules(self, conf: Configuration) -> Iterator[str]:
        for pattern in self.exclude:
            yield f"-{pattern}"
        if self.include:
            yield from (f"+^{re.escape(url)}$" for url in self.urls)
        known = conf.get("urlfilter.regex.rules")
        if known is None:
            known = conf.read_resource(conf.get_text("urlfilter.regex.file"))
        for line in known.splitlines():
            if not (self.include and line.startswith("+")):
                yield line
        for pattern in self.include:
            yield f"+{pattern}"
