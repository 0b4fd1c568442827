"""Every extension point, one base class each: what a plugin may implement.

    point                                        class               asked by
    org.apache.nutch.net.URLFilter               URLFilter           inject, generate, parse,
                                                 updatedb, invertlinks
    org.apache.nutch.net.URLNormalizer           URLNormalizer       the same, per scope
    org.apache.nutch.net.URLExemptionFilter      URLExemptionFilter  parse, fetch
                                                 (db.ignore.external.links)
    org.apache.nutch.protocol.Protocol           Protocol            fetch, updatehostdb
    org.apache.nutch.parse.Parser                Parser              parse
    org.apache.nutch.parse.HtmlParseFilter       HtmlParseFilter     the HTML parsers
    org.apache.nutch.scoring.ScoringFilter       ScoringFilter       inject to index
    org.apache.nutch.segment.SegmentMergeFilter  SegmentMergeFilter  mergesegs
    org.apache.nutch.indexer.IndexingFilter      IndexingFilter      index
    org.apache.nutch.indexer.IndexWriter         IndexWriter         index, clean
    org.apache.nutch.exchange.Exchange           Exchange            index
    org.apache.nutch.publisher.NutchPublisher    NutchPublisher      fetch

An extension is created once per configuration, `cls(conf, parameters)`; `parameters` are those of
`<implementation>` in plugin.xml. Where a job works on columns, each method for one record has a
twin for a column. A class that has only the row method works there, too (the base class loops); one
that has both is fast in both (see `minutch.plugin.columns`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from minutch.clock import Clock
from minutch.conf import Configuration
from minutch.plugin.columns import map_records, map_strings, map_updates, records
from minutch.plugin.results import Action, HTMLMetaTags, Parse, ParseResult, ProtocolOutput, Refused

if TYPE_CHECKING:
    import polars as pl
    from selectolax.lexbor import LexborHTMLParser

    from minutch.plugin.documents import Documents, Pages
    from minutch.plugin.parameters import Parameters
    from minutch.records.content import Content
    from minutch.records.crawldatum import CrawlDatum
    from minutch.records.document import NutchDocument
    from minutch.records.links import Inlinks
    from minutch.records.parsedata import ParseData
    from minutch.records.parsetext import ParseText
    from minutch.urls.plainurls import Untouched, Verdicts
    from minutch.urls.robots import KnownRobots, RobotRules

__all__ = [
    "POINTS",
    "Action",
    "Exchange",
    "ExtensionBase",
    "HTMLMetaTags",
    "HtmlParseFilter",
    "IndexWriter",
    "IndexingFilter",
    "NutchPublisher",
    "Parse",
    "ParseResult",
    "Parser",
    "Protocol",
    "ProtocolOutput",
    "Refused",
    "ScoringFilter",
    "SegmentMergeFilter",
    "URLExemptionFilter",
    "URLFilter",
    "URLNormalizer",
]


# -- the points ------------------------------------------------------------------------------------


class ExtensionBase(ABC):
    """Base of all points."""

    point_id: ClassVar[str]
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Row method → column methods of this point."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        self.conf = conf
        self.parameters = parameters
        self.clock: Clock = conf.clock
        """The job's clock, which a test may stop. Extensions take the time from here and nowhere
        else.
        """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """A class that overrides a row method without its column twin gets the base class's twin
        back, which loops.

        An inherited twin would still do what the overridden method did.
        """
        super().__init_subclass__(**kwargs)
        for row, columns in cls.twins.items():
            for column in columns:
                if row in cls.__dict__ and column not in cls.__dict__:
                    setattr(cls, column, getattr(_point_of(cls), column))

    def overrides(self, method: str) -> bool:
        """Whether the extension has its own version of a method of the extension point."""
        return getattr(type(self), method) is not getattr(_point_of(type(self)), method)


def _point_of(cls: type[ExtensionBase]) -> type[ExtensionBase]:
    """The base class of the extension point that `cls` implements."""
    return next(
        base
        for base in reversed(cls.__mro__)
        if "twins" in base.__dict__ and base is not ExtensionBase
    )


class URLFilter(ExtensionBase):
    """Lets URLs pass or not."""

    point_id = "org.apache.nutch.net.URLFilter"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {"filter": ("filter_column", "verdicts")}

    @abstractmethod
    def filter(self, url: str) -> str | None:
        """The URL (as it is, usually), or None to reject it."""

    def explain(self, url: str) -> str:
        """What decides about `url`, for messages: file, line and rule; empty where the filter can't
        say.
        """
        return ""

    def filter_column(self, urls: pl.Series) -> pl.Series:
        """The same for a column of strings; null stays null. Values are distinct when a chain calls
        it.
        """
        return map_strings(urls, self.filter)

    def verdicts(self) -> Verdicts | None:
        """Which ordinary URLs surely pass, and which surely don't; None where the filter can't
        say.
        """
        return None


class URLNormalizer(ExtensionBase):
    """Rewrites URLs."""

    point_id = "org.apache.nutch.net.URLNormalizer"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "normalize": ("normalize_column", "untouched")
    }

    @abstractmethod
    def normalize(self, url: str, scope: str) -> str | None:
        """The URL in its normal form, None to drop it. Raises UrlError if it is malformed."""

    def normalize_column(self, urls: pl.Series, scope: str) -> pl.Series:
        """The same for a column of strings; null stays null and a malformed URL becomes null."""
        return map_strings(urls, lambda url: self.normalize(url, scope))

    def untouched(self, scope: str) -> Untouched | None:
        """Which ordinary URLs surely stay as they are; None where the normalizer can't say."""
        return None


class URLExemptionFilter(ExtensionBase):
    """Exempts links to other hosts from db.ignore.external.links."""

    point_id = "org.apache.nutch.net.URLExemptionFilter"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    @abstractmethod
    def filter(self, from_url: str, to_url: str) -> bool:
        """Whether the link may stay."""


class Protocol(ExtensionBase):
    """Fetches URLs of its `schemes`."""

    point_id = "org.apache.nutch.protocol.Protocol"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    schemes: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    async def get_protocol_output(self, url: str, datum: CrawlDatum) -> ProtocolOutput:
        """Fetch one page. Never raises for what the server does: that is a status."""

    @abstractmethod
    async def get_robot_rules(
        self, url: str, datum: CrawlDatum, robots_content: list[Content] | None
    ) -> RobotRules:
        """The robots.txt rules for a URL; what was fetched for them is appended to `robots_content`
        if given.
        """

    def known_robots(self, url: str, folder: Path) -> KnownRobots | None:
        """What is remembered of the robots.txt for a URL in the state folder of a crawl; no host is
        asked.
        """
        return None

    def address_refusal(self, address: str) -> str:
        """Why an address (in digits) may not be connected to, by which rule; empty if it may."""
        return ""

    def look_ahead(self, url: str) -> None:
        """Prepare for this URL's host, from which pages will be fetched soon, without waiting. May
        do nothing.
        """

    async def addresses_of(self, host: str) -> list[str]:
        """The addresses of a host (in ASCII), as requests find them; none where there is none."""
        import asyncio
        import socket

        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                host, None, type=socket.SOCK_STREAM
            )
        except (OSError, UnicodeError):
            return []
        return [str(address[0]) for *_, address in found]

    async def close(self) -> None:
        """Give back connections."""


class Parser(ExtensionBase):
    """Makes text, metadata and links of fetched content; plugin.xml's `contentType` names the
    types.
    """

    point_id = "org.apache.nutch.parse.Parser"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    @abstractmethod
    def get_parse(self, content: Content) -> ParseResult:
        """Parse one page; a page that can't be parsed is a failed ParseStatus (or a ParseError)."""


class HtmlParseFilter(ExtensionBase):
    """Adds to (or changes) what an HTML parser found."""

    point_id = "org.apache.nutch.parse.HtmlParseFilter"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    @abstractmethod
    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        """The result, changed in place or new."""


class ScoringFilter(ExtensionBase):
    """Scores pages from injection to the index. Methods alter the datum they are given, scores are
    32-bit floats.

    `minutch.plugin.columns` says what the tables of the column twins hold.
    """

    point_id = "org.apache.nutch.scoring.ScoringFilter"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "inject_score": ("inject_score_columns",),
        "initial_score": ("initial_score_columns", "outlink_score"),
        "generator_sort_value": ("generator_sort_value_columns",),
        "distribute_score_to_outlinks": ("outlink_score",),
        "update_db_score": ("update_db_score_columns", "linked_score_columns"),
        "update_db_score_columns": ("linked_score_columns",),
        "orphaned_score": ("orphaned_score_columns",),
        "indexer_score": ("indexer_score_columns",),
    }

    def inject_score(self, url: str, datum: CrawlDatum) -> None:
        """Set the score of a seed (Nutch: injectedScore)."""

    def initial_score(self, url: str, datum: CrawlDatum) -> None:
        """Set the score of a page that has just been found through a link."""

    def generator_sort_value(self, url: str, datum: CrawlDatum, init_sort: float) -> float:
        """What generate sorts by, highest first; `init_sort` comes from the filter before (first:
        1.0).
        """
        return init_sort

    def pass_score_before_parsing(self, url: str, datum: CrawlDatum, content: Content) -> None:
        """Carry the score from the fetch list's entry to the content's metadata."""

    def pass_score_after_parsing(self, url: str, content: Content, parse: Parse) -> None:
        """Carry the score from the content's metadata to the parse's."""

    def distribute_score_to_outlinks(
        self,
        from_url: str,
        parse_data: ParseData,
        targets: list[tuple[str, CrawlDatum]],
        adjust: CrawlDatum | None,
        all_count: int,
    ) -> CrawlDatum | None:
        """Give the outlinks in `targets` (of `all_count`) their share; returns what the page itself
        gets back.
        """
        return adjust

    def outlink_score(
        self, parse_data: ParseData, kept: int, all_count: int, score: float
    ) -> float | None:
        """What `initial_score` and `distribute_score_to_outlinks` give each of `kept` outlinks
        without metadata.

        None where they may differ, or the page itself gets something back: then those two are
        asked. `score` comes from the filter before.
        """
        asked = self.overrides("initial_score") or self.overrides("distribute_score_to_outlinks")
        return None if asked else score

    def update_db_score(
        self, url: str, old: CrawlDatum | None, datum: CrawlDatum, inlinked: list[CrawlDatum]
    ) -> None:
        """Set the new score of `datum` from the old record and the links found to it."""

    def orphaned_score(self, url: str, datum: CrawlDatum) -> None:
        """Adjust the score of a page that no link was found to in this update."""

    def indexer_score(
        self,
        url: str,
        doc: NutchDocument,
        db_datum: CrawlDatum | None,
        fetch_datum: CrawlDatum,
        parse: Parse,
        inlinks: Inlinks | None,
        init_score: float,
    ) -> float:
        """The document's boost; `init_score` comes from the filter before (first: 1.0)."""
        return init_score

    def indexer_score_columns(
        self, documents: Documents, pages: Pages, init: pl.Series
    ) -> pl.Series:
        """`indexer_score` for each document; `init` and the result are Float32, null where it
        failed (logged).
        """
        if not self.overrides("indexer_score"):
            return init
        from minutch.plugin.documents import map_scores

        return map_scores(documents, pages, init, self.indexer_score)

    def inject_score_columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        """`inject_score` for each row."""
        return self._each_row("inject_score", frame)

    def initial_score_columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        """`initial_score` for each row."""
        return self._each_row("initial_score", frame)

    def orphaned_score_columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        """`orphaned_score` for each row."""
        return self._each_row("orphaned_score", frame)

    def generator_sort_value_columns(self, frame: pl.DataFrame, init: pl.Series) -> pl.Series:
        """`generator_sort_value` for each row; `init` and the result are Float32."""
        if not self.overrides("generator_sort_value"):
            return init
        import polars as pl

        rows = zip(records(frame), init, strict=True)
        values = [self.generator_sort_value(url, datum, sort) for (url, datum), sort in rows]
        return pl.Series(init.name, values, dtype=pl.Float64).cast(pl.Float32)

    def update_db_score_columns(
        self, frame: pl.DataFrame, old: pl.DataFrame, inlinked: pl.DataFrame
    ) -> pl.DataFrame:
        """`update_db_score` for each row of `frame`.

        `old` has the old records, row for row, with a null status where there was none; `inlinked`
        the records of the links, in order, with the row of `frame` that each belongs to in its
        column `row`; they are packed (only key, status, fetch time and score are columns), see
        `minutch.plugin.columns.unpack`.
        """
        if not self.overrides("update_db_score"):
            return frame
        return map_updates(frame, old, inlinked, self.update_db_score)

    def linked_score_columns(self, scores: pl.Series, inlinked: pl.DataFrame) -> pl.Series | None:
        """`update_db_score` for the `scores` (Float32) of entries that were linked to only; None if
        it changes more.
        """
        return None

    def _each_row(self, method: str, frame: pl.DataFrame) -> pl.DataFrame:
        return map_records(frame, getattr(self, method)) if self.overrides(method) else frame


class SegmentMergeFilter(ExtensionBase):
    """Keeps or drops a URL when segments are merged."""

    point_id = "org.apache.nutch.segment.SegmentMergeFilter"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    @abstractmethod
    def filter(
        self,
        url: str,
        generate: CrawlDatum | None,
        fetch: CrawlDatum | None,
        signature: CrawlDatum | None,
        content: Content | None,
        parse_data: ParseData | None,
        parse_text: ParseText | None,
        linked: Sequence[CrawlDatum],
    ) -> bool:
        """Whether the URL stays."""


class IndexingFilter(ExtensionBase):
    """Fills the document that goes to the index. `minutch.plugin.documents` says what the columns
    hold.
    """

    point_id = "org.apache.nutch.indexer.IndexingFilter"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {"filter": ("filter_columns",)}

    @abstractmethod
    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        """The document with its fields, None to leave the page out of the index.

        `datum` is the entry of crawl_fetch with the CrawlDb's signature. A MinutchError leaves the
        document out, too, and is counted as an error.
        """

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        """`filter` for each of `documents`, which it adds fields to; `pages` has what is known, row
        for row.

        Returns which stay, None for all: True, False for those that are left out, null after an
        error (logged).
        """
        from minutch.plugin.documents import map_documents

        return map_documents(
            documents,
            pages,
            lambda doc, page: self.filter(doc, page.parse, page.url, page.datum, page.inlinks),
        )


class IndexWriter(ExtensionBase):
    """Writes documents to a search engine or a file, in batches. A writer has two lives:

    1. In worker processes it makes bytes of documents: `configure`, then `encode` for each
       document.
    2. In the job it sends them on: `configure`, `open`, `write` for each batch in the order of the
       URLs, `commit` unless there is to be none, `close`; or `abort` in their place after an error.

    So `configure` does no I/O, and `encode` knows nothing but the document and the parameters.
    """

    point_id = "org.apache.nutch.indexer.IndexWriter"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {"encode": ("encode_columns",)}

    writes_anew: bool = False
    """Whether each job begins with an empty output, so that one of deletions alone would lose what
    is there.
    """
    batch_documents: int = 1000
    """Actions that `write` gets at most at a time; `configure` may set it."""
    batch_bytes: int = 1 << 24
    """Bytes of documents from which on a batch goes out."""
    retries: int = 10
    """How often a batch is tried again that the server is too busy for (IndexBusyError)."""
    backoff: float = 0.1
    """Seconds before the first of these; each next wait is twice as long. What the server asks for
    goes before.
    """

    def configure(self, parameters: Parameters) -> None:
        """Take the parameters of index-writers.xml. ConfigError for those that make no sense."""

    def open(self) -> None:
        """Connect. IndexWriterError if that is not possible; retried after an IndexBusyError."""

    @abstractmethod
    def encode(self, doc: NutchDocument) -> bytes:
        """A document as `write` gets it; the fields are those that the mapping has made."""

    def encode_columns(self, documents: Documents) -> pl.Series:
        """`encode` for each document (Binary)."""
        import polars as pl

        return pl.Series("payload", [self.encode(doc) for doc in documents.rows()], dtype=pl.Binary)

    @abstractmethod
    def write(self, actions: Sequence[Action]) -> Sequence[Refused]:
        """Send a batch; returns what the server refuses, while all else of the batch has been
        taken.

        Raises IndexBusyError where the server can't take (all of) it now, IndexWriterError where it
        never will.
        """

    def commit(self) -> None:
        """Make everything so far visible. Raises as `write`."""

    def close(self) -> None:
        """Finish and disconnect. Raises IndexWriterError."""

    def abort(self) -> None:
        """Give up after an error: disconnect, commit nothing, remove what is half done."""

    def describe(self) -> dict[str, tuple[str, object]]:
        """Parameter → what it is for, its value; for the log."""
        return {}


class Exchange(ExtensionBase):
    """Decides which index writers a document goes to."""

    point_id = "org.apache.nutch.exchange.Exchange"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {"match": ("match_columns",)}

    def open(self, parameters: Parameters) -> None:
        """Take the parameters of exchanges.xml. ConfigError for those that make no sense."""

    @abstractmethod
    def match(self, doc: NutchDocument) -> bool:
        """Whether the document goes to this exchange's writers."""

    def match_columns(self, documents: Documents) -> pl.Series:
        """`match` for each document (Boolean)."""
        import polars as pl

        return pl.Series("match", [self.match(doc) for doc in documents.rows()], dtype=pl.Boolean)


class NutchPublisher(ExtensionBase):
    """Sends fetch events to a message queue."""

    point_id = "org.apache.nutch.publisher.NutchPublisher"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def set_config(self) -> bool:
        """Connect as configured; whether that worked."""
        return False

    def publish(self, event: Mapping[str, Any]) -> None:
        """Send one event: `eventType` START, END or REPORT, `url`, `timestamp`, `eventData`."""

    def close(self) -> None:
        """Send what waits and disconnect; called once, when the fetch has ended."""


_OF_PAGES = (Exchange, IndexingFilter, IndexWriter, Parser, HtmlParseFilter, Protocol)
_OF_URLS = (
    URLFilter,
    URLExemptionFilter,
    URLNormalizer,
    ScoringFilter,
    SegmentMergeFilter,
    NutchPublisher,
)
POINTS: Mapping[str, type[ExtensionBase]] = {
    point.point_id: point for point in (*_OF_PAGES, *_OF_URLS)
}
"""All points by Nutch's id, in the order of nutch-extensionpoints."""
