"""Defines the extension points, one base class each.

    point                                        class               asked by
    org.apache.nutch.net.URLFilter               URLFilter           inject to invertlinks
    org.apache.nutch.net.URLNormalizer           URLNormalizer       the same, per scope
    org.apache.nutch.net.URLExemptionFilter      URLExemptionFilter  parse, fetch
    org.apache.nutch.protocol.Protocol           Protocol            fetch, updatehostdb
    org.apache.nutch.parse.Parser                Parser              parse
    org.apache.nutch.parse.HtmlParseFilter       HtmlParseFilter     the HTML parsers
    org.apache.nutch.parse.TextExtractor         TextExtractor       the HTML parsers (not Nutch's)
    org.apache.nutch.scoring.ScoringFilter       ScoringFilter       inject to index
    org.apache.nutch.segment.SegmentMergeFilter  SegmentMergeFilter  mergesegs
    org.apache.nutch.indexer.IndexingFilter      IndexingFilter      index
    org.apache.nutch.indexer.IndexWriter         IndexWriter         index, clean
    org.apache.nutch.exchange.Exchange           Exchange            index
    org.apache.nutch.publisher.NutchPublisher    NutchPublisher      fetch

An extension is created once per configuration, `cls(conf, parameters)`; `parameters` are those of
`<implementation>` in plugin.xml. Twins of methods, for columns: see `minutch.plugin.columns`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from minutch.plugin.columns import map_records, map_strings, map_updates, records
from minutch.plugin.extension import (
    Action,
    ExtensionBase,
    HTMLMetaTags,
    Parse,
    ParseResult,
    ProtocolOutput,
    Refused,
    Turn,
    at_once,
)

if TYPE_CHECKING:
    import polars as pl
    from selectolax.lexbor import LexborHTMLParser

    from minutch.plugin.documents import Documents, Pages
    from minutch.plugin.parameters import Parameters
    from minutch.records.crawldatum import CrawlDatum
    from minutch.records.document import NutchDocument
    from minutch.records.links import Inlinks
    from minutch.records.metadata import Metadata
    from minutch.records.parsedata import ParseData, ParseText
    from minutch.records.protocol import Content
    from minutch.urls.robots import KnownRobots, RobotRules
    from minutch.urls.rules import Untouched, Verdicts

    Anchors = dict[int, str] | None
    Kept = Collection[int] | None

__all__ = [
    "POINTS", "Action", "Exchange", "HTMLMetaTags", "HtmlParseFilter", "IndexWriter",
    "IndexingFilter", "NutchPublisher", "Parse", "ParseResult", "Parser", "Protocol",
    "ProtocolOutput", "Refused", "ScoringFilter", "SegmentMergeFilter", "TextExtractor",
    "URLExemptionFilter", "URLFilter", "URLNormalizer",
]  # fmt: skip


class URLFilter(ExtensionBase):
    """A filter that accepts or rejects URLs."""

    point_id = "org.apache.nutch.net.URLFilter"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "filter": ("filter_column", "verdicts"),
        "explain": ("explain_column",),
    }

    @abstractmethod
    def filter(self, url: str) -> str | None:
        """Returns the URL (usually unchanged), or None to reject it."""

    def explain(self, url: str) -> str:
        """Returns file, line and rule that decide about `url`, for messages; empty if unknown."""
        return ""

    def filter_column(self, urls: pl.Series) -> pl.Series:
        """Filters a column of strings; null stays null. Chains pass distinct values."""
        return map_strings(urls, self.filter)

    def explain_column(self, urls: pl.Series) -> pl.Series:
        """Explains a column of strings, of which none is null."""
        return map_strings(urls, self.explain)

    def verdicts(self) -> Verdicts | None:
        """Returns which plain URLs surely pass or fail; None if the filter can't say."""
        return None


class URLNormalizer(ExtensionBase):
    """A normalizer that rewrites URLs."""

    point_id = "org.apache.nutch.net.URLNormalizer"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "normalize": ("normalize_column", "untouched")
    }

    @abstractmethod
    def normalize(self, url: str, scope: str) -> str | None:
        """Returns the normal form of a URL, None to drop it. Raises UrlError if malformed."""

    def explain(self, url: str, scope: str) -> str:
        """Returns file and line of the rules that change `url`, for messages; empty if unknown."""
        return ""

    def normalize_column(self, urls: pl.Series, scope: str) -> pl.Series:
        """Normalizes a column of strings; null stays null, a malformed URL becomes null."""
        return map_strings(urls, lambda url: self.normalize(url, scope))

    def untouched(self, scope: str) -> Untouched | None:
        """Returns which plain URLs surely stay unchanged; None if the normalizer can't say."""
        return None


class URLExemptionFilter(ExtensionBase):
    """A filter that exempts links to other hosts from db.ignore.external.links."""

    point_id = "org.apache.nutch.net.URLExemptionFilter"

    @abstractmethod
    def filter(self, from_url: str, to_url: str) -> bool:
        """Returns whether the link may stay."""


class Protocol(ExtensionBase):
    """A protocol that fetches URLs of its `schemes`."""

    point_id = "org.apache.nutch.protocol.Protocol"
    schemes: ClassVar[tuple[str, ...]] = ()
    turn: Turn = staticmethod(at_once)
    """For requests to other hosts than that of the URL, such as a redirect of its robots.txt."""

    @abstractmethod
    async def get_protocol_output(self, url: str, datum: CrawlDatum) -> ProtocolOutput:
        """Fetches a page. Never raises for what a server does: that is a status."""

    @abstractmethod
    async def get_robot_rules(
        self, url: str, datum: CrawlDatum, robots_content: list[Content] | None
    ) -> RobotRules:
        """Returns the robots.txt rules for a URL; appends what it fetches to `robots_content`."""

    def known_robots(self, url: str, folder: Path) -> KnownRobots | None:
        """Returns what a crawl's state folder has of a URL's robots.txt, without a request."""
        return None

    def address_refusal(self, address: str) -> str:
        """Returns the rule that forbids connecting to an address (in digits), or empty."""
        return ""

    async def addresses_of(self, host: str) -> list[str]:
        """Returns the addresses of a host (in ASCII) that requests use; empty if none."""
        import asyncio
        from socket import SOCK_STREAM

        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, None, type=SOCK_STREAM)
        except (OSError, UnicodeError):
            return []
        return [str(address[0]) for *_, address in found]

    async def close(self) -> None:
        """Closes connections."""


class Parser(ExtensionBase):
    """A parser that extracts text, metadata and links; `contentType` in plugin.xml names types."""

    point_id = "org.apache.nutch.parse.Parser"

    @abstractmethod
    def get_parse(self, content: Content) -> ParseResult:
        """Parses a page; one that can't be parsed is a failed ParseStatus (or a ParseError)."""

    def markdown(self, content: Content, anchors: Anchors = None, kept: Kept = None) -> str | None:
        """Returns a page as Markdown, or None; `anchors` gets the fragments of headings by the
        numbers of their lines; `kept` are lines of a text by blocks. Raises UrlError, ParseError.
        """
        return None


class HtmlParseFilter(ExtensionBase):
    """A filter that adds to the result of an HTML parser, or changes it."""

    point_id = "org.apache.nutch.parse.HtmlParseFilter"

    @abstractmethod
    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        """Returns the result, changed in place or new."""


class TextExtractor(ExtensionBase):
    """An extractor of a page's main text; parser.html.text names it by `text` in plugin.xml."""

    point_id = "org.apache.nutch.parse.TextExtractor"

    @abstractmethod
    def extract(
        self, url: str, markup: bytes, document: LexborHTMLParser, metadata: Metadata
    ) -> str | bytes | None:
        """Returns a page's main text (or its UTF-8), None for all; may add to its metadata."""

    def markdown(
        self, url: str, markup: bytes, document: LexborHTMLParser, write: Callable[[Any], str]
    ) -> str | None:
        """Returns the same as Markdown; None likewise, or if this extractor writes none. `write`
        makes it of a lib_html.textblocks.Choice of the page's blocks.
        """
        return None


class ScoringFilter(ExtensionBase):
    """A filter that scores pages from injection to the index, in 32-bit floats. Methods may alter
    the datum that they get. `minutch.plugin.columns` describes the tables of the column twins.
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
        """Sets the score of a seed (Nutch: injectedScore)."""

    def initial_score(self, url: str, datum: CrawlDatum) -> None:
        """Sets the score of a page that has just been found through a link."""

    def generator_sort_value(self, url: str, datum: CrawlDatum, init_sort: float) -> float:
        """Returns what generate sorts by, highest first; `init_sort` is 1.0 at first."""
        return init_sort

    def pass_score_before_parsing(self, url: str, datum: CrawlDatum, content: Content) -> None:
        """Copies the score from the fetch list's entry to the content's metadata."""

    def pass_score_after_parsing(self, url: str, content: Content, parse: Parse) -> None:
        """Copies the score from the content's metadata to the parse's."""

    def distribute_score_to_outlinks(
        self,
        from_url: str,
        parse_data: ParseData,
        targets: list[tuple[str, CrawlDatum]],
        adjust: CrawlDatum | None,
        all_count: int,
    ) -> CrawlDatum | None:
        """Gives `targets` (of `all_count`) their share; returns what the page gets back."""
        return adjust

    def outlink_score(
        self, parse_data: ParseData, kept: int, all_count: int, score: float
    ) -> float | None:
        """Returns the score of each of `kept` outlinks without metadata, if all are equal.
        None where they may differ, or the page gets something back: then `initial_score` and
        `distribute_score_to_outlinks` are called. `score` is the previous filter's.
        """
        asked = self.overrides("initial_score") or self.overrides("distribute_score_to_outlinks")
        return None if asked else score

    def update_db_score(
        self, url: str, old: CrawlDatum | None, datum: CrawlDatum, inlinked: list[CrawlDatum]
    ) -> None:
        """Sets the new score of `datum` from the old record and its inlinks."""

    def orphaned_score(self, url: str, datum: CrawlDatum) -> None:
        """Adjusts the score of a page that got no link in this update."""

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
        """Returns the document's boost; `init_score` is the previous filter's, 1.0 at first."""
        return init_score

    def indexer_score_columns(
        self, documents: Documents, pages: Pages, init: pl.Series
    ) -> pl.Series:
        """Scores each document, in Float32; null where that failed (logged)."""
        if not self.overrides("indexer_score"):
            return init
        from minutch.plugin.documents import map_scores

        return map_scores(documents, pages, init, self.indexer_score)

    def inject_score_columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Applies `inject_score` to each row."""
        return self._each_row("inject_score", frame)

    def initial_score_columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Applies `initial_score` to each row."""
        return self._each_row("initial_score", frame)

    def orphaned_score_columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Applies `orphaned_score` to each row."""
        return self._each_row("orphaned_score", frame)

    def generator_sort_value_columns(self, frame: pl.DataFrame, init: pl.Series) -> pl.Series:
        """Applies `generator_sort_value` to each row; `init` and the result are Float32."""
        if not self.overrides("generator_sort_value"):
            return init
        import polars as pl

        rows = zip(records(frame), init, strict=True)
        values = [self.generator_sort_value(url, datum, sort) for (url, datum), sort in rows]
        return pl.Series(init.name, values, dtype=pl.Float64).cast(pl.Float32)

    def update_db_score_columns(
        self, frame: pl.DataFrame, old: pl.DataFrame, inlinked: pl.DataFrame
    ) -> pl.DataFrame:
        """Applies `update_db_score` to each row. `old` has the old records, row for row, with a
        null status where there was none; `inlinked` those of the links, packed
        (`minutch.plugin.columns.unpack`), in order, with the `row` that each belongs to.
        """
        if not self.overrides("update_db_score"):
            return frame
        return map_updates(frame, old, inlinked, self.update_db_score)

    def linked_score_columns(self, scores: pl.Series, inlinked: pl.DataFrame) -> pl.Series | None:
        """Scores entries that only got links (Float32); None if more than that changes."""
        return None

    def _each_row(self, method: str, frame: pl.DataFrame) -> pl.DataFrame:
        return map_records(frame, getattr(self, method)) if self.overrides(method) else frame


class SegmentMergeFilter(ExtensionBase):
    """A filter that keeps or drops URLs when segments are merged."""

    point_id = "org.apache.nutch.segment.SegmentMergeFilter"

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
        """Returns whether the URL stays."""


class IndexingFilter(ExtensionBase):
    """A filter that fills the document for the index (columns: `minutch.plugin.documents`)."""

    point_id = "org.apache.nutch.indexer.IndexingFilter"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {"filter": ("filter_columns",)}

    @abstractmethod
    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        """Returns the document with its fields, None to leave the page out of the index.
        `datum` is the entry of crawl_fetch with the CrawlDb's signature. A MinutchError leaves the
        document out as well, and is counted as an error.
        """

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        """Adds fields to each of `documents`, whose pages are `pages`, row for row.
        Returns a mask, None for all: True stays, False is left out, null is an error (logged).
        """
        from minutch.plugin.documents import map_documents

        return map_documents(
            documents,
            pages,
            lambda doc, page: self.filter(doc, page.parse, page.url, page.datum, page.inlinks),
        )


class IndexWriter(ExtensionBase):
    """A writer that sends documents to a search engine or a file, in batches.

    1. In worker processes it makes bytes of documents: `configure`, then `encode` for each.
    2. In the job it sends them on: `configure`, `open`, `write` for each batch in the order of the
       URLs, `commit` unless there is to be none, `close`; or `abort` in their place after an error.

    So `configure` does no I/O, and `encode` knows nothing but the document and the parameters.
    """

    point_id = "org.apache.nutch.indexer.IndexWriter"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {"encode": ("encode_columns",)}

    overwrites: bool = False
    """True if each job starts with an empty output, which deletions alone would lose."""
    batch_documents: int = 1000
    """Most actions in a call of `write`; `configure` may set it."""
    batch_bytes: int = 1 << 24
    """Bytes of documents from which on a batch goes out."""
    retries: int = 10
    """Number of retries of a batch while the server is busy (IndexBusyError)."""
    backoff: float = 0.1
    """Seconds before the first retry, doubled each time; the server's own wish comes first."""

    def configure(self, parameters: Parameters) -> None:
        """Takes the parameters of index-writers.xml. Raises ConfigError for wrong ones."""

    def open(self) -> None:
        """Connects. Raises IndexWriterError; retried after an IndexBusyError."""

    @abstractmethod
    def encode(self, doc: NutchDocument) -> bytes:
        """Returns a document, its fields already mapped, as `write` takes it."""

    def encode_columns(self, documents: Documents) -> pl.Series:
        """Encodes each document (Binary)."""
        import polars as pl

        return pl.Series("payload", [self.encode(doc) for doc in documents.rows()], dtype=pl.Binary)

    @abstractmethod
    def write(self, actions: Sequence[Action]) -> Sequence[Refused]:
        """Sends a batch; returns what the server refuses (it has taken the rest).
        Raises IndexBusyError if the server can't take (all of) it now, else IndexWriterError.
        """

    def commit(self) -> None:
        """Makes everything so far visible. Raises as `write`."""

    def close(self) -> None:
        """Finishes and disconnects. Raises IndexWriterError."""

    def abort(self) -> None:
        """Disconnects after an error without a commit, and removes partial output."""

    def describe(self) -> dict[str, tuple[str, object]]:
        """Returns parameter → (purpose, value), for the log."""
        return {}


class Exchange(ExtensionBase):
    """A rule that decides which index writers a document goes to."""

    point_id = "org.apache.nutch.exchange.Exchange"
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {"match": ("match_columns",)}

    def open(self, parameters: Parameters) -> None:
        """Takes the parameters of exchanges.xml. Raises ConfigError for wrong ones."""

    @abstractmethod
    def match(self, doc: NutchDocument) -> bool:
        """Returns whether the document goes to this exchange's writers."""

    def match_columns(self, documents: Documents) -> pl.Series:
        """Matches each document (Boolean)."""
        import polars as pl

        return pl.Series("match", [self.match(doc) for doc in documents.rows()], dtype=pl.Boolean)


class NutchPublisher(ExtensionBase):
    """A publisher that sends fetch events to a message queue."""

    point_id = "org.apache.nutch.publisher.NutchPublisher"

    def set_config(self) -> bool:
        """Connects as configured; returns whether that worked."""
        return False

    def publish(self, event: Mapping[str, Any]) -> None:
        """Sends an event: `eventType` START, END or REPORT, `url`, `timestamp`, `eventData`."""

    def close(self) -> None:
        """Sends what is queued and disconnects; called once, when the fetch has ended."""


_OF_PARSES = (Parser, HtmlParseFilter, TextExtractor, Protocol)
_OF_PAGES = (Exchange, IndexingFilter, IndexWriter, *_OF_PARSES, URLFilter, URLExemptionFilter)
_ALL = (*_OF_PAGES, URLNormalizer, ScoringFilter, SegmentMergeFilter, NutchPublisher)
POINTS: Mapping[str, type[ExtensionBase]] = {point.point_id: point for point in _ALL}
"""All points by Nutch's id, in the order of nutch-extensionpoints."""
