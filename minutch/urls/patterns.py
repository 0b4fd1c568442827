"""Decides which URLs are of one pattern: pages that one program makes, whatever they are about.

    https://Shop.example/Item/4711-red;s=9f3ac01?sort=up&id=7     the URL
    shop.example/Item/{n}-red;s?id&sort                           its pattern
    shop.example/Item/{n}-red;s                                   its path
    shop.example/Item/?id&sort                                    its names, in its directory
    shop.example/Item/                                            its directory
    shop.example/Item/                                            the first directory on the host
    shop.example/*/*                                              its shape
    shop.example                                                  its host

    pattern   host [ ":" port ] path [ "?" sorted names of parameters, each once ]
    {n}       digits
    {x}       what machines name: UUIDs, hashes, session ids. Letters and digits without a break,
              7 or more if they are hexadecimal, or else 16; or 16 letters of both cases, mixed
    {+}       segments of a path that stand in it before (those that begin with a class: three
              times), or come after the 24th; parameters after the 24th
    shape     of the path: * for words, # for what is a class alone, with the dots and slashes

The scheme, user, fragment and the values of parameters, those in paths too, don't count. What a
page's address is made of tells nothing of its content: who holds a pattern to be a trap has to
count what came of it. 0.4 µs a URL.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.kernels import patterns as kernels
from minutch.kernels.arrow import from_series, to_series

LEVELS: Final = ("host", "shape", "first directory", "directory", "names", "path", "pattern")
"""What a URL belongs to, from the largest to the smallest: but for the shape and the names, each is
the beginning of the next. Where names of directories are drawn by lot, a shape is all that its
pages have in common; where each article has a name of its own, and views to print, to share and to
reply to, names of parameters are what tells these from the articles. Tried and dropped: an eighth
level of values that are words (`?do=edit&id`). A DokuWiki's forms were told from its exports, but
forgotten as the host grew, and then asked for at once: 95 % of 150 pages after 586 requests in
place of 299.
"""
_PARAMETERS: Final = re.compile(r";[^/]*")
# A class between slashes or dots alone, not part of a word.
_CLASS: Final = re.compile(r"(?<![^/.])(?:\{[\x00-\x7f]\})+(?![^/.])")
_WORD: Final = re.compile(r"[^/.#]+")


def pattern_of(url: str) -> str:
    """Returns the pattern of a URL."""
    return str(patterns(pl.Series([url]))[0])


def patterns(urls: pl.Series) -> pl.Series:
    """Returns the pattern (String) of each URL (String); null of null."""
    strings = from_series(urls)
    views = np.empty((len(urls), 4), np.int32)
    out = _room(strings.views, together=True)
    used = kernels.url_patterns(strings.column, 0, out, views, np.empty(0, np.uint64))
    found = to_series("pattern", views, [out[:used]], is_text=True)
    return (
        pl.select(pl.when(urls.is_not_null()).then(found)).to_series()
        if urls.null_count()
        else found
    )


def levels_of(url: str) -> tuple[str, ...]:
    """Returns the LEVELS of a URL."""
    pattern = pattern_of(url)
    path = pattern.partition("?")[0]
    host, _, rest = path.partition("/")
    first, slash, _ = rest.partition("/")
    directory = path[: path.rindex("/") + 1]
    shape = _WORD.sub("*", _CLASS.sub("#", _PARAMETERS.sub("", f"/{rest}")))
    first = f"{host}/{first}/" if slash else f"{host}/"
    names = directory + pattern[len(path) :]
    return host, host + shape, first, directory, names, path, pattern


def level_hashes(urls: pl.Series, seed: int) -> npt.NDArray[np.uint64]:
    """Returns a hash of each of the LEVELS of each URL (String or Binary): n × 7. With a `seed` of
    63 bits that nobody knows, hosts can't make URLs that share another's.
    """
    strings = from_series(urls)
    hashes = np.empty(len(LEVELS) * len(urls), np.uint64)
    # No views: the kernel then makes hashes only, in the room of one pattern.
    out, views = _room(strings.views, together=False), np.empty((0, 4), np.int32)
    kernels.url_patterns(strings.column, seed, out, views, hashes)
    return hashes.reshape(-1, len(LEVELS))


def form_hashes(urls: pl.Series, seed: int) -> npt.NDArray[np.uint64]:
    """Returns the hash of each URL (String or Binary) without its scheme and fragment, and with
    `{x}` for what machines name: of a page's names in many sessions it is the same. 0 where nothing
    of that kind is in it. The `seed` is as for `level_hashes`.
    """
    strings = from_series(urls)
    hashes = np.empty(len(urls), np.uint64)
    kernels.url_forms(strings.column, seed, _room(strings.views, together=False), hashes)
    return hashes


def _room(views: npt.NDArray[np.int32], *, together: bool) -> npt.NDArray[np.uint8]:
    """Returns room for the longest pattern, or for all: it takes no memory before it is used."""
    sizes = views[:, 0]
    most = int(sizes.sum(dtype=np.int64)) if together else int(sizes.max(initial=0))
    return np.empty(4 * most + kernels.ROOM * (len(views) if together else 1), np.uint8)
