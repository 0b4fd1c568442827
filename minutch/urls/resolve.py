"""Makes a link's target absolute: in Nutch's spelling (which its files hold), or by the WHATWG standard (browsers').

`Resolver` is made once per page and resolves all its links. Most links are one of five shapes whose answer is a
concatenation; they take well under a microsecond, in a kernel over the links of a page a few nanoseconds. The rest go
through `parts.parse`, java.net.URL's rules; property tests hold the ways together. Nutch's spelling encodes and
lower-cases nothing: normalizers do.

Source: URLUtil.resolveURL, with its repair of java.net.URL for targets that are a query only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import Any

from minutch.errors import UrlError
from minutch.formats.javaio import DataInput, encode_text
from minutch.records.links import Outlink
from minutch.records.outlinkrun import OutlinkRun
from minutch.urls.parts import Url, parse

_BLANK = "".join(map(chr, range(0x21)))
_ABSOLUTE = re.compile(r"https?://[A-Za-z0-9._-]+(?::[0-9]{0,9})?(?:[/?#]|\Z)").match
_SAME_SCHEME = re.compile(r"//[A-Za-z0-9._-]+(?::[0-9]{0,9})?(?:[/?#]|\Z)").match
_RELATIVE = re.compile(r"[^:/?#.][^:/?#]*(?:/(?:[^:/?#.][^:/?#]*)?)*(?:[?#]|\Z)").match

_PLAIN_BASE = re.compile(
    r"(https?:)(//[A-Za-z0-9._-]+(?::[0-9]{1,5})?)((?:/(?![.])[^/?#\x00-\x20]*)*/)((?![.])[^/?#\x00-\x20]*)"
    r"(?:\?[^#\x00-\x20]*)?"
)
"""A base all of whose prefixes are its own beginnings: scheme, root, directory, path."""
_MORE = 16
"""Bytes beside its prefix that a link may grow by."""

_NUTCHS_SCHEMES = ("http:", "https:", "ftp:", "file:")


class Resolver:
    """Resolves targets against one base URL; the constructor raises UrlError if the base is not a URL."""

    def __init__(self, base: str) -> None:
        self.base = base
        self._base = parse(base)
        self._page = str(self._base._replace(ref=None))
        self._root = _text_before_path(self._base)
        self._directory = self._directory_prefix()

    def _directory_prefix(self) -> str | None:
        """The prefix of a plain relative target; None where joining would have to remove dot segments."""
        path = self._base.path[: self._base.path.rfind("/") + 1] or "/"
        plain = self._base.authority is not None and path[0] == "/" and "/." not in path
        return self._root + path if plain and self._base.protocol != "jar" else None

    @cached_property
    def _query(self) -> str | None:
        """The prefix of a target that is a query only."""
        try:
            return str(parse(self._base.path.rpartition("/")[2] + "?", self._base)).removesuffix("?")
        except UrlError:
            return None

    def based(self, href: str) -> Resolver:
        """The resolver of a page with this base element, whose URL is java.net.URL's, as in Nutch's HtmlParser."""
        return Resolver(str(parse(href, self._base)))

    def resolve(self, target: str) -> str:
        """The absolute URL of `target`; UrlError if there is none."""
        target = target.strip(_BLANK)
        first = target[:1]
        if first == "/":
            if target[1:2] != "/":
                return self._root + target
            if _SAME_SCHEME(target) is not None:
                return f"{self._base.protocol}:{target}"
        elif first == "#":
            return self._page + target
        elif first == "?":
            if self._query is not None:
                return self._query + target
        elif _ABSOLUTE(target) is not None:
            return target
        elif self._directory is not None:
            if _RELATIVE(target) is not None:
                return self._directory + target
            if first == "." and self._base.path:
                return self._climb(target)
        return self.resolve_slowly(target)

    def _climb(self, target: str) -> str:
        """The same for a target that may start with `./` or `../` and whose base has a plain directory."""
        directory, rest = self._directory or "", target
        while rest.startswith(("./", "../")):
            up, rest = rest.startswith(".."), rest.partition("/")[2]
            end = directory.rfind("/", len(self._root), -1) + 1 if up else len(directory)
            if not end:
                return self._climb_above(directory, f"../{rest}") or self.resolve_slowly(target)
            directory = directory[:end]
        plain = rest != target and (not rest or rest[0] in "?#" or _RELATIVE(rest) is not None)
        return directory + rest if plain else self.resolve_slowly(target)

    @staticmethod
    def _climb_above(root: str, rest: str) -> str | None:
        """The same where only one `../` or two would climb above the root: these stay."""
        plain = rest[3:].removeprefix("../")
        return root + rest if _RELATIVE(plain) is not None else None

    def resolve_slowly(self, target: str) -> str:
        """The same answer by the full rules alone."""
        target = target.strip(_BLANK)
        if target.startswith("?"):
            target = self._base.path.rpartition("/")[2] + target
        return str(parse(target, self._base))

    def resolve_all(self, links: Sequence[Outlink]) -> Sequence[Outlink]:
        """The links with absolute URLs, without those that can't be resolved; an OutlinkRun waits for a kernel."""
        return RelativeRun(self.base, links) if isinstance(links, OutlinkRun) else _resolve_each(self, links)

    def prefixes(self) -> list[str | None]:
        """What may stand before a target, as the kernel knows it; a query only is left to the full rules."""
        return [self._root, self._directory, self._page, f"{self._base.protocol}:", self._base.path or None]


class RelativeRun(OutlinkRun):
    """The links of a page as they stand in it; made absolute when they are looked at, or with those of other pages."""

    __slots__ = ("base", "given")

    def __init__(self, base: str, given: OutlinkRun) -> None:
        """`base` must be a URL."""
        self.base = base
        self.given = given

    def __getattr__(self, name: str) -> Any:
        if name not in OutlinkRun.__slots__:
            raise AttributeError(name)
        resolve_runs([self])
        return getattr(self, name)


def resolve_runs(runs: Sequence[RelativeRun]) -> None:
    """Make the links of pages absolute, by a kernel as far as it goes, without those that can't be resolved."""
    if not runs:
        return
    import numpy as np

    from minutch.kernels import resolve as kernel

    given = [run.given for run in runs]
    data = b"".join([run.data for run in given])
    lengths = np.array([run.length for run in given], np.int64)
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
    for run, count, (start, end) in zip(runs, counts.tolist(), pairwise([0, *ends.tolist()]), strict=True):
        run.length, run.data = count, absolute[start:end]


def _prefixes(bases: Sequence[str]) -> tuple[Any, Any, Any]:
    """The prefixes of targets by their bases, as the kernel takes them, and the size of the longest of each base."""
    import numpy as np

    texts: list[bytes] = []
    bounds: list[tuple[int, int]] = []
    longest = []
    at = 0
    for base in bases:
        plain = _PLAIN_BASE.fullmatch(base) if base.isascii() else None
        if plain is None:
            prefixes = [None if text is None else encode_text(text) for text in Resolver(base).prefixes()]
            text = b"".join(filter(None, prefixes))
            ends = accumulate((len(prefix or b"") for prefix in prefixes), initial=at)
            bounds += [
                (start, -1 if p is None else end) for (start, end), p in zip(pairwise(ends), prefixes, strict=True)
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


def _text_before_path(url: Url) -> str:
    return f"{url.protocol}://{url.authority}" if url.authority else f"{url.protocol}:"


@lru_cache(maxsize=256)
def resolver(base: str) -> Resolver:
    """The Resolver of a base, cached for the next link of the same page."""
    return Resolver(base)


def resolve(base: str, target: str) -> str:
    """`target` made absolute as Nutch spells it; UrlError if base or target is not a URL."""
    return resolver(base).resolve(target)


class WhatwgResolver:
    """Resolves targets as browsers do: by the WHATWG URL standard, with the library upa-url.

    `base` may be empty, then targets must be absolute.
    """

    __slots__ = ("_base",)

    def __init__(self, base: str) -> None:
        self._base = base

    def based(self, href: str) -> WhatwgResolver:
        """The resolver of a page with this base element."""
        return WhatwgResolver(self.resolve(href))

    def resolve(self, target: str) -> str:
        """The absolute URL of `target`; UrlError if there is none."""
        from upa_url import URL

        try:
            return str(URL(target, self._base).href if self._base else URL(target).href)
        except (RuntimeError, ValueError) as exc:  # upa-url reports every failure as RuntimeError
            raise UrlError(f"can't resolve {target!r} against {self._base!r}: {exc}") from exc

    def resolve_all(self, links: Sequence[Outlink]) -> Sequence[Outlink]:
        """The links with absolute URLs, without those that can't be resolved or have a scheme that Nutch lacks."""
        found = _resolve_each(self, links)
        return [link for link in found if link.to_url.startswith(_NUTCHS_SCHEMES)]


def _resolve_each(resolver: Resolver | WhatwgResolver, links: Sequence[Outlink]) -> list[Outlink]:
    found = []
    for link in links:
        with suppress(UrlError):
            found.append(Outlink(resolver.resolve(link.to_url), link.anchor, link.metadata))
    return found
