"""The table `rights`: one row for each statement about one use of a parsed page of each segment;
and what is refused of a crawl. What words mean is `statements`'.

    parse_data     header fields; meta elements, which parse-html leaves in the parse metadata under
                   their names; licences, which parse-pagedata leaves there
    content        robots.txt (fetcher.store.robotstxt) and tdmrep.json (fetcher.tdmrep) of the
                   page's host, through redirects

A page's robots.txt is the one that was current when it was fetched (draft-ietf-aipref-attach, 3.3):
the last in its segment or one before; where none is left from then, the first one behind it. A file
is read once for its host, and for a page only the rules that decide are looked up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, ClassVar, Final

import polars as pl

from minutch.cycle.segment.store import CONTENT, LAYOUTS, PARSE_DATA, Segment
from minutch.errors import FormatError, UrlError
from minutch.hadoop.formats.batch import Batch, keys_of
from minutch.inspect.query.predicates import Pruning
from minutch.inspect.query.skipping import PieceGroup, each, piece_groups, wanted_ranges
from minutch.inspect.query.statements import (
    ANY,
    MECHANISMS,
    REFUSED,
    USES,
    VERDICTS,
    RobotsStatements,
    Statement,
    Statements,
    TdmFile,
    of_directives,
    of_license,
    of_link_header,
    of_linked_data,
    of_reservation,
    of_usage,
)
from minutch.inspect.query.table import Request, SqlColumn, Table
from minutch.records import parsedata_columns
from minutch.records.metadata import RESPONSE_CODE_KEY, ROBOTS_KEY
from minutch.records.protocol import Content
from minutch.urls.hostcolumns import host_names
from minutch.urls.parts import parse
from minutch.urls.robots import HOST_FILES, ROBOTS_TXT, TDM_FILE, normal_path
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.keyranges import KeyRange, SortedPart

if TYPE_CHECKING:
    from minutch.inspect.query.crawl import CrawlFolder

LICENSE_KEY: Final = "pagedata.license"
LINKED_DATA_KEY: Final = "pagedata.json-ld"
_RESERVATION, _POLICY = "tdm-reservation", "tdm-policy"
_INSIDE, _INSIDE_POLICY = "tdm:reservation", "tdm:policy"
"""The same in the metadata of a PDF or EPUB."""
_HEADERS: Final = (
    *("Content-Usage", "Content-Signal", _RESERVATION, _POLICY, "X-Robots-Tag", "Link"),
)
_ELEMENTS: Final = (
    _INSIDE,
    _INSIDE_POLICY,
    _RESERVATION,
    _POLICY,
    ROBOTS_KEY,
    LICENSE_KEY,
    LINKED_DATA_KEY,
)
_ORIGIN: Final = r"^([A-Za-z][A-Za-z0-9+.-]*://[^/?#]+)"
_MOST_REDIRECTS: Final = 5
"""Of a host's file; RFC 9309, 2.3.1.2."""

Words = tuple[tuple[str, str, str], ...]
"""Each where it stands ("content": a header, "parse": an element), its name, its value."""


def statements_of(words: Words, agents: frozenset[str]) -> Statements:
    """Returns what the words of a page say; for TDMRep a document's own metadata or elements come
    before headers.
    """
    if not words:
        return ()

    def header(name: str) -> list[str]:
        return [value for of, other, value in words if of == "content" and other == name]

    def element(name: str) -> list[str]:
        return [value for of, other, value in words if of == "parse" and other == name]

    found: list[Statement] = []
    for name in ("Content-Usage", "Content-Signal"):
        if header(name):
            # RFC 9110, 5.3: lines of one field are one list.
            found += of_usage(name.lower(), ", ".join(header(name)), f"header {name}")
    found += (
        of_reservation(element(_INSIDE), element(_INSIDE_POLICY), f"metadata {_INSIDE}")
        or of_reservation(element(_RESERVATION), element(_POLICY), f"meta {_RESERVATION}")
        or of_reservation(header(_RESERVATION), header(_POLICY), f"header {_RESERVATION}")
    )
    found += of_directives(header("X-Robots-Tag"), "header X-Robots-Tag", agents)
    for name in (ROBOTS_KEY, *sorted(agents)):
        found += of_directives(element(name), f"meta {name}", agents)
    for value in header("Link"):
        found += of_link_header(value)
    for value in element(LICENSE_KEY):
        found += of_license(value, "rel=license")
    for value in element(LINKED_DATA_KEY):
        found += of_linked_data(value)
    return tuple(dict.fromkeys(found))


class HostFiles:
    """The robots.txt and tdmrep.json files that segments have of hosts."""

    def __init__(
        self, segments: Sequence[Segment], origins: Iterable[str], agents: Collection[str]
    ) -> None:
        """Reads those of `origins` (http://example.org:8080). Raises FormatError."""
        self._found: dict[str, list[tuple[int, Content]]] = {}
        self._robots = lru_cache(maxsize=None)(self._read_robots)
        self._tdm = lru_cache(maxsize=None)(self._read_tdm)
        self._agents = sorted(agents)
        wanted = {origin + path for origin in origins for path in HOST_FILES}
        for _ in range(1 + _MOST_REDIRECTS):
            # Also those without a file: an empty list says that they were looked for.
            for url in wanted:
                self._found[url] = []
            for number, segment in enumerate(segments):
                for content in contents(segment, wanted):
                    self._found[content.url].append((number, content))
            targets = {_target(content) for url in wanted for _, content in self._found[url]}
            wanted = {target for target in targets if target and target not in self._found}
            if not wanted:
                break

    def about(self, origin: str, segment: int, url: str, *, with_tdm: bool) -> Statements:
        """Returns what the files say of a page in a segment; of TDM only if the page itself says
        nothing of it.
        """
        robots = self._robots(origin, segment)
        tdm = self._tdm(origin, segment) if with_tdm else None
        if robots is None and tdm is None:
            return ()
        path = normal_path(url)
        found = () if robots is None else robots.statements(path)
        return found if tdm is None else found + tdm.statements(path)

    def _read_robots(self, origin: str, segment: int) -> RobotsStatements | None:
        file = self._file(origin + ROBOTS_TXT, segment)
        if file is None:
            return None
        return RobotsStatements(file.content, file.content_type, file.url, self._agents)

    def _read_tdm(self, origin: str, segment: int) -> TdmFile | None:
        file = self._file(origin + TDM_FILE, segment)
        return None if file is None else TdmFile(file.content, file.url)

    def _file(self, url: str, segment: int) -> Content | None:
        for _ in range(1 + _MOST_REDIRECTS):
            known = self._found.get(url)
            if not known:
                return None
            at = bisect_right(known, segment, key=lambda one: one[0])
            # 0 where all came later: the first one behind the page.
            content = known[max(at - 1, 0)][1]
            code = content.metadata.get(RESPONSE_CODE_KEY) or ""
            url = _target(content)
            if not url:
                # A 404's page has words, too. Segments before the code was kept have none.
                return content if code[:1] in ("", "2") else None
        return None


def contents(segment: Segment, urls: Collection[str]) -> Iterator[Content]:
    """Yields the contents of some URLs that a segment has; only their ranges are read."""
    if not urls or not segment.has(CONTENT):
        return
    keys = sorted(url.encode() for url in urls)
    # No key lies between a text and itself with a zero.
    pruning = Pruning(tuple(KeyRange(key, key + b"\0") for key in keys))
    for path in segment.parts(CONTENT):
        part = SortedPart(path, LAYOUTS[CONTENT].value_class)
        for span in wanted_ranges(part, pruning):
            first = bisect_left(keys, span.low or b"")
            end = None if span.high is None else bisect_left(keys, span.high)
            try:
                batch = part.batch(span, pl.Series(keys[first:end], dtype=pl.Binary))
                for row in range(batch.size):
                    yield Content.from_bytes(batch.value(row))
            except FormatError as exc:
                raise exc.within(path) from exc


def _target(content: Content) -> str:
    """Returns where a redirect leads; empty for another answer."""
    code = content.metadata.get(RESPONSE_CODE_KEY) or "3"
    location = (content.metadata.field("Location") or "").strip()
    if not location or not code.startswith("3"):
        return ""
    try:
        return str(parse(location, parse(content.url)))
    except UrlError:
        return ""


_TYPES: Final = {
    "segment": pl.String(),
    "url": pl.String(),
    "host": pl.String(),
    "mechanism": pl.Enum(MECHANISMS),
    "use": pl.Enum(USES),
    "verdict": pl.Enum(VERDICTS),
    "statement": pl.String(),
    "source": pl.String(),
    "agent": pl.String(),
}


class RightsTable(Table):
    """A table of statements about the parsed pages of segments."""

    name = "rights"
    columns: ClassVar = {
        name: SqlColumn(dtype, lambda rows, name=name: rows[name])  # type: ignore[misc]
        for name, dtype in _TYPES.items()
    }

    def __init__(self, segments: Sequence[Segment], agents: Collection[str] = ()) -> None:
        """`agents` are the names of this crawler, in lower case."""
        self._segments = [segment for segment in segments if segment.has(PARSE_DATA)]
        self._with_files = segments
        self._agents = frozenset(agents)

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        files = HostFiles(self._with_files, self._origins(request.pruning), self._agents)
        pieces = piece_groups(self._segments, [PARSE_DATA], request.pruning)
        return each(lambda group: self.make(self._rows(group, files), request), pieces)

    def _origins(self, pruning: Pruning) -> list[str]:
        def origins(group: PieceGroup) -> pl.DataFrame | None:
            keys = group.read(PARSE_DATA, lambda batch: pl.DataFrame([keys_of(batch)]))
            return (
                None if keys is None else _origins_of(decode_keys(keys["key"])).unique().to_frame()
            )

        found = [*each(origins, piece_groups(self._segments, [PARSE_DATA], pruning))]
        return [] if not found else pl.concat(found)["origin"].drop_nulls().unique().to_list()

    def _rows(self, group: PieceGroup, files: HostFiles) -> pl.DataFrame:
        table = group.read(PARSE_DATA, self._words)
        assert table is not None  # a group has the folder that it was made for
        numbers = {segment.name: number for number, segment in enumerate(self._with_files)}
        of_piece = [numbers[name] for name in group.names]
        urls = decode_keys(table["key"])
        rows: list[int] = []
        said: list[Statement] = []
        columns = urls, _origins_of(urls), table["of"], table["words"].to_list()
        # Pages of a site have the same words, mostly.
        of_page = lru_cache(maxsize=4096)(partial(statements_of, agents=self._agents))
        for row, (url, origin, of, words) in enumerate(zip(*columns, strict=True)):
            found = of_page(tuple(tuple(one.values()) for one in words or ()))
            if origin is not None:
                with_tdm = not any(one.mechanism == "tdmrep" for one in found)
                found += files.about(origin, of_piece[of], url, with_tdm=with_tdm)
            rows += [row] * len(found)
            said += found
        names = group.names.gather(table["of"].gather(rows))
        statements = pl.DataFrame(said, schema=Statement._fields, orient="row")
        return pl.DataFrame(
            [
                names.alias("segment"),
                urls.gather(rows).alias("url"),
                host_names(urls).gather(rows).alias("host"),
                *(statements[name].cast(_TYPES[name]) for name in Statement._fields),
            ]
        )

    def _words(self, batch: Batch) -> pl.DataFrame:
        """Returns the words of each page, a list of where, name, value; null for none."""
        table = parsedata_columns.decode(batch)
        places = [("content", name) for name in _HEADERS]
        places += [("parse", name) for name in (*_ELEMENTS, *sorted(self._agents))]
        found = []
        for of, name in places:
            values = table.all_values(name, of)
            words = pl.struct(of=pl.lit(of), name=pl.lit(name), value=decode_keys(values["value"]))
            found.append(values.select("row", words=words))
        lists = pl.concat(found).group_by("row", maintain_order=True).agg("words")
        rows = pl.DataFrame({"row": range(len(table))}, schema={"row": pl.Int64})
        return rows.join(lists, on="row", how="left", maintain_order="left").select("words")


def _origins_of(urls: pl.Series) -> pl.Series:
    return urls.str.extract(_ORIGIN).alias("origin")


def refusals(crawl: CrawlFolder, use: str = ANY) -> pl.DataFrame:
    """Returns what is refused of the newest parses of a crawl: `url`, `mechanism`, `statement`,
    `source`, `agent` of each statement that refuses the use (of ANY, one of all uses), sorted by
    URL.
    """
    refused = pl.col("verdict").cast(pl.String) == REFUSED
    mine = refused if use == ANY else refused & (pl.col("use").cast(pl.String) == use)
    rights = crawl.tables[RightsTable.name].scan().filter(mine)
    parses = crawl.tables["parses"].scan().filter(pl.col("status").cast(pl.String) == "success")
    newest = parses.select("url", "segment").collect(engine="streaming")
    # Segments come oldest first.
    newest = newest.unique("url", keep="last")
    rows = rights.select("url", "segment", "mechanism", "statement", "source", "agent")
    found = rows.collect(engine="streaming").join(newest, on=["url", "segment"], how="semi")
    return found.drop("segment").unique(maintain_order=True).sort("url", maintain_order=True)
