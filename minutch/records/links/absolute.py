"""Makes the links of pages absolute: by a kernel for whole runs, or one by one.

Links are resolved as `urls.resolve` says; those that can't be are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from typing import Any

from minutch.errors import UrlError
from minutch.hadoop.formats.javaio import DataInput, encode_text
from minutch.records.links.link import Outlink
from minutch.records.links.outlinkrun import OutlinkRun
from minutch.urls.resolve import Resolver, WhatwgResolver, resolved_page, resolver

_MORE = 16
"""Bytes beside its prefix that a link may grow by."""
_PLAIN_BASE = re.compile(
    r"(https?:)(//[A-Za-z0-9._-]+(?::[0-9]{1,5})?)((?:/(?![.])[^/?#\x00-\x20]*)*/)((?![.])[^/?#\x00-\x20]*)"
    r"(?:\?[^#\x00-\x20]*)?"
)
"""A base all of whose prefixes are its own beginnings: scheme, root, directory, path."""


def resolve_all(resolver: Resolver | WhatwgResolver, links: Sequence[Outlink]) -> Sequence[Outlink]:
    """Returns the links with absolute URLs; by Nutch's rules an OutlinkRun waits for the kernel
    (`resolve_runs`).

    By the WHATWG's, links with a scheme that Nutch lacks are left out, too.
    """
    if isinstance(resolver, Resolver) and isinstance(links, OutlinkRun):
        return RelativeRun(resolver.base, links)
    return _resolve_each(resolver, links)


class RelativeRun(OutlinkRun):
    """The links of a page as they stand in it; made absolute when they are looked at, or with those
    of other pages.
    """

    __slots__ = ("base", "outlinks")

    def __init__(self, base: str, outlinks: OutlinkRun) -> None:
        """`base` must be a URL."""
        self.base = base
        self.outlinks = outlinks

    def __getattr__(self, name: str) -> Any:
        if name not in OutlinkRun.__slots__:
            raise AttributeError(name)
        resolve_runs([self])
        return getattr(self, name)


def resolve_runs(runs: Sequence[RelativeRun]) -> None:
    """Makes the links of pages absolute, by a kernel as far as it goes, without those that can't be
    resolved.
    """
    if not runs:
        return
    import numpy as np

    from minutch.kernels import resolve as kernel

    outlinks = [run.outlinks for run in runs]
    data = b"".join([run.data for run in outlinks])
    lengths = np.array([run.length for run in outlinks], np.int64)
    prefixes, bounds, longest = _prefixes([run.base for run in runs])
    out = np.empty(len(data) + int(lengths @ (longest + _MORE)), np.uint8)
    counts, ends, state = (np.zeros(size, np.int64) for size in (len(runs), len(runs), 4))
    rest = np.frombuffer(data, np.uint8), lengths, prefixes, bounds, out, counts, ends, state
    while not kernel.resolve_links(*rest):
        page, to = int(state[kernel.AT_PAGE]), int(state[kernel.TO])
        source = DataInput(data, int(state[kernel.AT]))
        link = Outlink.read(source)
        state[kernel.DONE] += 1
        state[kernel.AT] = source.pos
        with suppress(UrlError):
            link.to_url = resolver(runs[page].base).resolve_slowly(link.to_url)
            found = link.to_bytes()
            out[to : to + len(found)] = np.frombuffer(found, np.uint8)
            state[kernel.TO] += len(found)
            counts[page] += 1
    absolute = out[: ends[-1]].tobytes()
    for run, count, (start, end) in zip(
        runs, counts.tolist(), pairwise([0, *ends.tolist()]), strict=True
    ):
        run.length, run.data = count, absolute[start:end]


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
            text = b"".join(filter(None, prefixes))
            ends = accumulate((len(prefix or b"") for prefix in prefixes), initial=at)
            bounds += [
                (start, -1 if p is None else end)
                for (start, end), p in zip(pairwise(ends), prefixes, strict=True)
            ]
        else:
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


def _resolve_each(resolver: Resolver | WhatwgResolver, links: Sequence[Outlink]) -> list[Outlink]:
    found = []
    for link in links:
        with suppress(UrlError):
            found.append(Outlink(resolved_page(resolver, link.to_url), link.anchor, link.metadata))
    return found
