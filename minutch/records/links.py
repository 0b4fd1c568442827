"""org.apache.nutch.parse.Outlink, org.apache.nutch.crawl.Inlink and Inlinks: links out of a page
and into one; and the links of a page as one run of bytes, made absolute.

    Outlink    text URL, text anchor, boolean has metadata, [MapWritable]
    Inlink     the same in Nutch from 1.21 (NUTCH-3101); text URL, text anchor alone until 1.20
    Inlinks    int count, Inlink*
    run        Outlink* without metadata: what kernels walk and what a ParseData's bytes hold

Nothing in a file tells which of the two Inlink layouts it has, and either Nutch fails on the
other's or misreads it. A record has a layout if it is used up exactly. So the layout is decided for
a whole database, from its records: `layouts_of` says which readings fit one record; the store
combines them.

To code for single links a run is a sequence of Outlinks that are made when they are asked for. It
never changes: a plugin that adds links puts a list in its place. Links are resolved as
`urls.resolve` says, by a kernel for whole runs, or one by one; those that can't be are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from typing import Any, Final, Self, overload

from minutch.errors import FormatError, UrlError
from minutch.hadoop.formats.javaio import DataInput, DataOutput, encode_text, encode_vlong
from minutch.hadoop.formats.writables import MapWritable, Writable
from minutch.urls.parts import spelled_host
from minutch.urls.resolve import Resolver, WhatwgResolver, resolved_page, resolver

LAYOUT_PLAIN: Final = "1.20"
"""Inlinks of URL and anchor, as Nutch up to 1.20 writes them."""
LAYOUT_METADATA: Final = "1.21"
"""Inlinks with a metadata flag, as Nutch from 1.21 writes them."""
LAYOUTS: Final = (LAYOUT_METADATA, LAYOUT_PLAIN)
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")
_MORE = 16
"""Bytes beside its prefix that a link may grow by."""
_PLAIN_BASE = re.compile(
    r"(https?:)(//[A-Za-z0-9._-]+(?::[0-9]{1,5})?)((?:/(?![.])[^/?#\x00-\x20]*)*/)((?![.])[^/?#\x00-\x20]*)"
    r"(?:\?[^#\x00-\x20]*)?"
)
"""A base all of whose prefixes are its own beginnings: scheme, root, directory, path."""


def _metadata_to_string(metadata: MapWritable | None) -> str:
    return "".join(f" {key}: {value}" for key, value in metadata.java_items()) if metadata else ""


def _write_metadata(out: DataOutput, metadata: MapWritable | None) -> None:
    out.write_boolean(bool(metadata))
    if metadata:
        metadata.write(out)


@dataclass(slots=True)
class Outlink(Writable):
    """A link found on a page: an absolute URL and its anchor text."""

    class_name = "org.apache.nutch.parse.Outlink"
    to_url: str
    anchor: str = ""
    metadata: MapWritable | None = None

    @classmethod
    def read(cls, data: DataInput) -> Self:
        url, anchor = data.read_text(), data.read_text()
        return cls(url, anchor, MapWritable.read(data) if data.read_boolean() else None)

    def write(self, out: DataOutput) -> None:
        url, anchor = encode_text(self.to_url), encode_text(self.anchor)
        # Nearly all: lengths and flag take a byte each.
        if not self.metadata and len(url) < 128 and len(anchor) < 128:
            out.buf += b"%c%b%c%b\0" % (len(url), url, len(anchor), anchor)
            return
        out.write_text_bytes(url)
        out.write_text_bytes(anchor)
        _write_metadata(out, self.metadata)

    def __hash__(self) -> int:
        return hash((self.to_url, self.anchor))

    def __str__(self) -> str:
        return f"toUrl: {self.to_url} anchor: {self.anchor}{_metadata_to_string(self.metadata)}"


@dataclass(slots=True)
class Inlink(Writable):
    """A link to a page. Two are equal if URL and anchor are, whatever their metadata."""

    class_name = "org.apache.nutch.crawl.Inlink"
    from_url: str
    anchor: str = ""
    metadata: MapWritable | None = None

    @classmethod
    def read(cls, data: DataInput, layout: str = LAYOUT_METADATA) -> Self:
        url, anchor = data.read_text(), data.read_text()
        flag = layout == LAYOUT_METADATA and data.read_boolean()
        return cls(url, anchor, MapWritable.read(data) if flag else None)

    def write(self, out: DataOutput, layout: str = LAYOUT_METADATA) -> None:
        out.write_text(self.from_url)
        out.write_text(self.anchor)
        if layout == LAYOUT_METADATA:
            _write_metadata(out, self.metadata)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Inlink) and (self.from_url, self.anchor) == (
            other.from_url,
            other.anchor,
        )

    def __hash__(self) -> int:
        return hash((self.from_url, self.anchor))

    def __str__(self) -> str:
        return self.to_string(LAYOUT_METADATA)

    def to_string(self, layout: str) -> str:
        """Inlink.toString of the Nutch that writes `layout`."""
        text = f"fromUrl: {self.from_url} anchor: {self.anchor}"
        return (
            f"{text} metadata: {_metadata_to_string(self.metadata)}"
            if layout == LAYOUT_METADATA
            else text
        )


class Inlinks(Writable):
    """The links to one page, each once, in the order of their coming. (Nutch has a HashSet.)"""

    __slots__ = ("_links",)
    class_name = "org.apache.nutch.crawl.Inlinks"

    def __init__(self, links: Iterable[Inlink] = ()) -> None:
        self._links: dict[Inlink, None] = dict.fromkeys(links)

    def add(self, link: Inlink) -> None:
        """Adds a link unless an equal one is there."""
        self._links.setdefault(link)

    def __len__(self) -> int:
        return len(self._links)

    def __iter__(self) -> Iterator[Inlink]:
        """Returns the links in the order in which they were added (or read)."""
        return iter(self._links)

    def anchors(self) -> list[str]:
        """Returns the links' texts, each once for each host that uses it (Inlinks.getAnchors)."""
        seen = dict.fromkeys(
            (spelled_host(link.from_url), link.anchor) for link in self._links if link.anchor
        )
        return [anchor for _, anchor in seen]

    @classmethod
    def read(cls, data: DataInput, layout: str = LAYOUT_METADATA) -> Self:
        start = data.pos
        count = data.read_int()
        if not 0 <= count <= data.remaining:  # a link takes two bytes at least
            raise FormatError("impossible number of inlinks", offset=start, found=count)
        return cls(Inlink.read(data, layout) for _ in range(count))

    def write(self, out: DataOutput, layout: str = LAYOUT_METADATA) -> None:
        out.write_int(len(self._links))
        for link in self._links:
            link.write(out, layout)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Inlinks) and self._links.keys() == other._links.keys()

    def __hash__(self) -> int:
        return len(self._links)

    def __str__(self) -> str:
        return self.to_string(LAYOUT_METADATA)

    def to_string(self, layout: str) -> str:
        """Inlinks.toString of the Nutch that writes `layout`."""
        return "Inlinks:\n" + "".join(f" {link.to_string(layout)}\n" for link in self._links)


def layouts_of(record: bytes) -> frozenset[str]:
    """Returns the layouts that use up the bytes of an Inlinks record exactly; none if damaged."""
    return frozenset(layout for layout in LAYOUTS if fits(record, layout))


def fits(record: bytes, layout: str) -> bool:
    """Returns whether `layout` uses up the bytes of an Inlinks record exactly."""
    data = DataInput(record)
    try:
        Inlinks.read(data, layout)
    except FormatError:
        return False
    return not data.remaining


def layout_of(records: Iterable[bytes]) -> str:
    """Returns the layout that all of `records` share, decided by the first record that only one
    layout fits.

    Records that fit both (they hold no links, or are forged) go by whether their links' URLs look
    like URLs; where nothing tells, it is the newer layout. Raises FormatError at a record that fits
    none.
    """
    likely = LAYOUT_METADATA
    for record in records:
        fitting = [layout for layout in LAYOUTS if fits(record, layout)]
        if not fitting:
            raise FormatError(
                "neither layout of Inlinks fits a record", expected=" or ".join(LAYOUTS)
            )
        if len(fitting) == 1:
            return fitting[0]
        if not _has_urls(record, likely):  # forged, or a URL without a scheme
            likely = next((layout for layout in LAYOUTS if _has_urls(record, layout)), likely)
    return likely


def _has_urls(record: bytes, layout: str) -> bool:
    data = DataInput(record)
    return all(_SCHEME.match(Inlink.read(data, layout).from_url) for _ in range(data.read_int()))


class OutlinkRun(Sequence[Outlink]):
    """`length` links without metadata, back to back in `data`."""

    __slots__ = ("data", "length")

    def __init__(self, length: int, data: bytes) -> None:
        self.length = length
        self.data = data

    @classmethod
    def of(cls, links: Iterable[Outlink]) -> OutlinkRun | None:
        """Returns the run of any links; None if one has metadata."""
        out = DataOutput()
        count = 0
        for link in links:
            if link.metadata:
                return None
            link.write(out)
            count += 1
        return cls(count, out.getvalue())

    @classmethod
    def to(cls, targets: Sequence[bytes]) -> OutlinkRun:
        """Returns the run of links to these (`encode_text`), without anchors."""
        # Nearly all: the length takes a byte.
        parts = [
            b"%c%b\0\0" % (len(url), url)
            if len(url) < 128
            else b"%b%b\0\0" % (encode_vlong(len(url)), url)
            for url in targets
        ]
        return cls(len(parts), b"".join(parts))

    def without(self, targets: Set[bytes]) -> OutlinkRun:
        """Returns the run without its links to these that have no anchor."""
        import numpy as np

        from minutch.kernels.outlinks import drop_targets

        data, ends = np.frombuffer(self.data, np.uint8), np.array([*map(len, targets)], np.int64)
        out, size = np.empty(len(data), np.uint8), np.zeros(1, np.int64)
        joined_targets = np.frombuffer(b"".join(targets), np.uint8)
        kept = drop_targets(data, self.length, joined_targets, ends.cumsum(), out, size)
        return OutlinkRun(kept, out[: int(size[0])].tobytes())

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Outlink]:
        source = DataInput(self.data)
        for _ in range(self.length):
            yield Outlink.read(source)

    @overload
    def __getitem__(self, index: int) -> Outlink: ...

    @overload
    def __getitem__(self, index: slice) -> list[Outlink]: ...

    def __getitem__(self, index: int | slice) -> Outlink | list[Outlink]:
        if isinstance(index, int) and 0 <= index < self.length:
            return next(islice(self, index, None))
        return list(self)[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, OutlinkRun):
            return self.data == other.data
        return isinstance(other, list) and list(self) == other

    def __hash__(self) -> int:
        return hash(self.data)

    def __repr__(self) -> str:
        return f"OutlinkRun({list(self)!r})"


def as_run(links: Sequence[Outlink]) -> Sequence[Outlink]:
    """Returns the links as a run, as they are if one has metadata."""
    run = links if isinstance(links, OutlinkRun) else OutlinkRun.of(links)
    return links if run is None else run


def joined(*parts: Sequence[Outlink]) -> Sequence[Outlink]:
    """One after the other: a run if all of them are runs. What waits for the kernel goes on to."""
    if len(parts) == 2:
        first, last = parts
        if isinstance(first, OutlinkRun) and isinstance(last, RelativeRun):
            if not first:  # nothing to put before it
                return last
            before = first if last.before is None else _run_of(first, last.before)
            return RelativeRun(last.base, last.outlinks, last.resolver, before)
    runs = [part for part in parts if isinstance(part, OutlinkRun)]
    if len(runs) < len(parts):  # one has links with metadata, or objects
        return [link for part in parts for link in part]
    return _run_of(*runs)


def _run_of(*runs: OutlinkRun) -> OutlinkRun:
    return OutlinkRun(sum(map(len, runs)), b"".join(run.data for run in runs))


def resolve_all(resolver: Resolver | WhatwgResolver, links: Sequence[Outlink]) -> Sequence[Outlink]:
    """Returns the links with absolute URLs; an OutlinkRun waits for the kernel (`resolve_runs`).

    By the WHATWG's rules, links with a scheme that Nutch lacks are left out, too.
    """
    if isinstance(links, OutlinkRun):
        if isinstance(resolver, Resolver):
            return RelativeRun(resolver.base, links)
        if resolver.plain_base:
            return RelativeRun(resolver.plain_base, links, resolver)
    found = []
    for link in links:
        with suppress(UrlError):
            found.append(Outlink(resolved_page(resolver, link.to_url), link.anchor, link.metadata))
    return found


class RelativeRun(OutlinkRun):
    """The links of a page as they stand there; made absolute on reading, or with other pages'."""

    __slots__ = ("base", "before", "outlinks", "resolver")

    def __init__(
        self,
        base: str,
        outlinks: OutlinkRun,
        resolver: WhatwgResolver | None = None,
        before: OutlinkRun | None = None,
    ) -> None:
        """`base` must be a URL, as the standard spells it where links are resolved by a
        `resolver`. `before` are links that are absolute already.
        """
        self.base = base
        self.outlinks = outlinks
        self.resolver = resolver
        self.before = before

    def __getattr__(self, name: str) -> Any:
        if name not in OutlinkRun.__slots__:  # else a lookup of a missing name would resolve
            raise AttributeError(name)
        resolve_runs([self])  # sets `length` and `data`, which were asked for
        return getattr(self, name)


def resolve_runs(runs: Sequence[RelativeRun]) -> None:
    """Makes the links of pages absolute, by a kernel where it can, without those that fail."""
    strict = [run for run in runs if run.resolver is not None]
    for group in (strict, [run for run in runs if run.resolver is None]):
        if group:
            _resolve(group)


def _resolve(runs: Sequence[RelativeRun]) -> None:
    """The same for pages that all have a resolver, or none."""
    import numpy as np

    from minutch.kernels import urls as kernel

    outlinks = [run.outlinks for run in runs]
    data = b"".join([run.data for run in outlinks])
    lengths = np.array([run.length for run in outlinks], np.int64)
    prefixes, bounds, longest = _prefixes([run.base for run in runs])
    room = len(data) + int(lengths @ (longest + _MORE))
    out = np.empty(room, np.uint8)
    counts, ends, state = (
        np.zeros(size, np.int64) for size in (len(runs), len(runs), kernel.STATE)
    )
    state[kernel.STRICT] = runs[0].resolver is not None
    links = np.frombuffer(data, np.uint8)
    # The kernel stops at each link that is not for a short way: the library resolves it, and the
    # kernel goes on behind it.
    while not kernel.resolve_links(links, lengths, prefixes, bounds, out, counts, ends, state):
        page, to = int(state[kernel.AT_PAGE]), int(state[kernel.TO])
        source = DataInput(data, int(state[kernel.AT]))
        link = Outlink.read(source)
        state[kernel.DONE] += 1
        state[kernel.AT] = source.pos
        with suppress(UrlError):
            whatwgs = runs[page].resolver
            link.to_url = (
                resolver(runs[page].base).resolve_slowly(link.to_url)
                if whatwgs is None
                else resolved_page(whatwgs, link.to_url)
            )
            found = link.to_bytes()
            if to + len(found) + room > len(out):  # what is encoded grows
                out = np.concatenate((out[:to], np.empty(2 * (len(out) + len(found)), np.uint8)))
            out[to : to + len(found)] = np.frombuffer(found, np.uint8)
            state[kernel.TO] += len(found)
            counts[page] += 1
    absolute = out[: ends[-1]].tobytes()
    for run, count, (start, end) in zip(
        runs, counts.tolist(), pairwise([0, *ends.tolist()]), strict=True
    ):
        run.length, run.data = count, absolute[start:end]
        if run.before is not None:
            run.length += run.before.length
            run.data = run.before.data + run.data


def _prefixes(bases: Sequence[str]) -> tuple[Any, Any, Any]:
    """Returns the prefixes of targets by their bases, as the kernel takes them, and the size of the
    longest of each base.
    """
    import numpy as np

    texts: list[bytes] = []
    bounds: list[tuple[int, int]] = []
    longest = []
    at = 0
    for base in bases:
        plain = _PLAIN_BASE.fullmatch(base) if base.isascii() else None
        if plain is None:
            prefixes = [
                None if text is None else encode_text(text) for text in Resolver(base).prefixes()
            ]
            # Prefixes stand one after the other, where they are not all beginnings of the base.
            text = b"".join(filter(None, prefixes))
            ends = accumulate((len(prefix or b"") for prefix in prefixes), initial=at)
            bounds += [
                (start, -1 if p is None else end)
                for (start, end), p in zip(pairwise(ends), prefixes, strict=True)
            ]
        else:
            # The base itself is all prefixes: bounds alone tell them apart.
            text = base.encode()
            root, directory, path = plain.end(2), plain.end(3), plain.end(4)
            places = (0, root), (0, directory), (0, len(text)), (0, plain.end(1)), (root, path)
            bounds += [(at + start, at + end) for start, end in places]
        texts.append(text)
        longest.append(len(text))
        at += len(text)
    return (
        np.frombuffer(b"".join(texts), np.uint8),
        np.array(bounds, np.int64).reshape(-1, 2),
        np.array(longest, np.int64),
    )
