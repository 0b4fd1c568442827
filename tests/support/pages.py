"""Pages for tests of parsers: contents, configurations, and one call from HTML to a parse."""

from __future__ import annotations

from minutch.conf import Configuration
from minutch.cycle.parse.dispatch import ParseUtil
from minutch.plugin.points import Parse, ParseResult
from minutch.records.metadata import FETCH_STATUS_KEY, Metadata
from minutch.records.protocol import Content

URL = "http://example.org/dir/page.html"
BASE_PLUGINS = "scoring-opic|urlfilter-regex|urlnormalizer-(pass|regex|basic)"


def configuration(plugins: str = "parse-html", **properties: str) -> Configuration:
    """The shipped configuration with these plugins; `_` stands for a dot in the name of a property
    without dots.
    """
    values = {
        name if "." in name else name.replace("_", "."): value for name, value in properties.items()
    }
    return Configuration.load(
        [], overrides={"plugin.includes": f"{plugins}|{BASE_PLUGINS}"} | values
    )


def content(
    data: str | bytes,
    content_type: str = "text/html",
    *,
    url: str = URL,
    header: str | None = None,
    **metadata: str,
) -> Content:
    """A fetched page; `header` is its Content-Type header (default: the type)."""
    body = data.encode() if isinstance(data, str) else data
    values = Metadata.of({"Content-Type": header or content_type, FETCH_STATUS_KEY: "33"})
    for name, value in metadata.items():
        values.set(name if name.startswith("_") else name.replace("_", "-"), value)
    return Content(url, url, body, content_type, values)


def parse_all(page: Content, conf: Configuration) -> ParseResult:
    """All documents that come of a page."""
    return ParseUtil(conf).parse(page)


def parse(
    data: str | bytes, conf: Configuration | None = None, content_type: str = "text/html"
) -> Parse:
    """The parse of a page at `URL`."""
    result = parse_all(content(data, content_type), conf or configuration())
    return result[URL]


def links(found: Parse) -> list[tuple[str, str]]:
    """URLs and anchors."""
    return [(link.to_url, link.anchor) for link in found.data.outlinks]
