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

A directory's index page has the text of the directory, but is a path, and a pattern, of its own:
lists of files differ in numbers, and tell nothing of the files, of which none was asked for.

The scheme, user, fragment and the values of parameters, those in paths too, don't count. What a
page's address is made of tells nothing of its content: who holds a pattern to be a trap has to
count what came of it. 0.4 µs a URL. What some names let one expect before that, `Doubts` says.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.conf import Configuration
from minutch.errors import ConfigError
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
_FIRST, _DIRECTORY, _NAMES, _PATH, _PATTERN = range(2, len(LEVELS))
DOUBTS: Final = "generate.pattern.doubts"
_INDEX: Final = np.uint64(1 << 60)
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
    """Returns a hash of each of the LEVELS of each URL (String or Binary): n × 7, equal where texts
    are, but for a directory and its index page. With a `seed` of 63 bits that nobody knows, hosts
    can't make URLs that share another's.
    """
    strings = from_series(urls)
    hashes = np.empty(len(LEVELS) * len(urls), np.uint64)
    # No views: the kernel then makes hashes only, in the room of one pattern.
    out, views = _room(strings.views, together=False), np.empty((0, 4), np.int32)
    kernels.url_patterns(strings.column, seed, out, views, hashes)
    levels = hashes.reshape(-1, len(LEVELS))
    is_index = levels[:, _PATH] == levels[:, _DIRECTORY]
    is_bare = is_index & (levels[:, _PATTERN] == levels[:, _PATH])
    levels[is_index, _PATH] ^= _INDEX
    levels[is_bare, _PATTERN] ^= _INDEX
    return levels


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


class Doubts:
    """Names of parameters and of parts of paths that seldom lead to new pages, by their kinds.

    No more than a guess of what comes first: what a host's names of a kind gave decides, as soon as
    x/5 were asked for. Tried and dropped, by the share of pages of fifteen small sites
    (`tests.benchmarks.traps.drawn`, seed 1) that 1.1 requests for each find, 68 % with these names,
    59 % without, and where honest pages have the doubtful names, 59 and 62 %: suspects by their
    kind, too (71 and 55 %; a shop with six filters wasted 47 requests for 17); each name for itself
    (the same); doubts that last until x were asked for (71 and 55 %). Instead of names: fewer first
    tries of each path (of 66 %, 59 % by eight of them, 63 % by four), or of each folder and shape
    (64 %), or half the exploration (65 %; of both large webs 8 to 14 % less).
    """

    def __init__(self, lines: str = "") -> None:
        """Each line has a kind, ? (parameters) or / (parts of paths), and names. Raises
        ConfigError.
        """
        self.kinds = [""]
        self._numbers: dict[str, int] = {}
        for line in lines.lower().splitlines():
            kind, *rest = line.split() or ["#"]
            if kind.startswith("#"):
                continue
            if not rest or rest[0] not in ("?", "/"):
                raise ConfigError(f"{line}: neither ? nor / after a kind")
            if kind not in self.kinds:
                self.kinds.append(kind)
            names = (rest[0] + name for name in rest[1:])
            self._numbers |= dict.fromkeys(names, self.kinds.index(kind))
        self.names = tuple(self._numbers)
        """`?sort`, `/print`."""
        named = {sign: [one[1:] for one in self._numbers if one[0] == sign] for sign in "?/"}
        of = {sign: "|".join(map(re.escape, names)) for sign, names in named.items()}
        self._parameter = of["?"] and rf"(?i)[?&;]({of['?']})(?:[=&;#]|$)"
        self._some_part = of["/"] and rf"(?i)/({of['/']})(?:\.\w+)?(/|[;?#]|$)"
        """What is that, or the host, or in the query: takes two thirds of the time."""
        self._part = rf"(?i)^[^/]*//[^/?#]*([^?#]*?){self._some_part.removeprefix('(?i)')}"

    @classmethod
    def of(cls, conf: Configuration) -> Doubts:
        """Reads those of generate.pattern.doubts. Raises ConfigError."""
        name = (conf.get(DOUBTS) or "").strip()
        return cls(conf.read_resource(name) if name else "")

    def within(self, urls: pl.Series, levels: npt.NDArray[np.uint8]) -> pl.DataFrame:
        """Returns `row` and `kind` (its number) of URLs (String) with such a name, the parameter's
        if there are both, unless all URLs of their level, by its number, have it.
        """
        rows = pl.DataFrame({"url": urls, "level": levels}).with_row_index("row")
        found = [pl.DataFrame(schema={"row": pl.UInt32, "kind": pl.UInt16})]
        url, level = pl.col("url").str, pl.col("level")
        if self._parameter:
            some = rows.filter(~level.is_in([_NAMES, _PATTERN]))
            some = some.filter(url.contains(self._parameter))
            found.append(self._of_kind(some, "?", url.extract(self._parameter)))
        if self._some_part:
            some = rows.filter(level < _PATH).filter(url.contains(self._some_part))
            some = some.with_columns(url.extract_groups(self._part).alias("parts"))
            before, name, after = (pl.col("parts").struct.field(at) for at in "123")
            common = (
                pl.when(after != "/").then(_PATH)
                .when(before == "").then(_FIRST)
                .otherwise(_DIRECTORY)
            )  # fmt: skip
            found.append(self._of_kind(some.filter(level < common), "/", name))
        return pl.concat(found).unique("row", keep="first", maintain_order=True)

    def _of_kind(self, rows: pl.DataFrame, sign: str, name: pl.Expr) -> pl.DataFrame:
        name = pl.lit(sign) + name.str.to_lowercase()
        # what is no letter in lower case, as İ is, may match and not be found
        kind = name.replace_strict(self._numbers, default=0, return_dtype=pl.UInt16)
        return rows.select("row", kind=kind).filter(pl.col("kind") > 0)
