"""org.apache.nutch.metadata.Metadata: multi-valued string properties; and the names of the keys
that Nutch uses.

    int number of names, (text name, int number of values, text value*)*

Names are written in the order of Java's HashMap, which `java_names` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, wraps
from typing import Any, Final, Self

from minutch.errors import FormatError
from minutch.hadoop.formats import javahash
from minutch.hadoop.formats.javaio import DataInput, DataOutput, decode_text
from minutch.hadoop.formats.registry import GenericWritable
from minutch.hadoop.formats.writables import Writable, lookup

# Keys in the metadata of CrawlDatum (org.apache.nutch.metadata.Nutch)
GENERATE_TIME_KEY: Final = "_ngt_"
PROTO_STATUS_KEY: Final = "_pst_"
FETCH_TIME_KEY: Final = "_ftk_"
REPR_URL_KEY: Final = "_repr_"
FETCH_STATUS_KEY: Final = "_fst_"
CACHING_FORBIDDEN_KEY: Final = "caching.forbidden"
CACHING_FORBIDDEN_NONE: Final = "none"
FIXED_INTERVAL_KEY: Final = "fixedInterval"
RESPONSE_TIME_KEY: Final = "_rs_"
RESPONSE_CODE_KEY: Final = "nutch.protocol.code"
IP_ADDRESS_KEY: Final = "_ip_"
REQUEST_KEY: Final = "_request_"
RESPONSE_HEADERS_KEY: Final = "_response.headers_"
PROTOCOL_VERSIONS_KEY: Final = "_protocol_versions_"
CONTENT_TYPE_KEY: Final = "Content-Type"
CAPTURE: Final = "_warc_"
"""The page's last capture in WARC files (cycle.fetch.results.recorder). Nutch has no such key."""
TWIN_KEY: Final = "_twin_"
"""The URL of the page that stands for this one, which its canonical link leads to (db.canonical).
Nutch has no such key.
"""

# Keys in the metadata of Content and ParseData
ROBOTS_KEY: Final = "robots"
"""The directives of robots meta elements; `noindex`, or when the page is to be, before them where a
header or an element for this crawler alone says so.
"""
ORIGINAL_CHAR_ENCODING_KEY: Final = "OriginalCharEncoding"
CHAR_ENCODING_FOR_CONVERSION_KEY: Final = "CharEncodingForConversion"
SIGNATURE_KEY: Final = "nutch.content.digest"
SEGMENT_NAME_KEY: Final = "nutch.segment.name"
SCORE_KEY: Final = "nutch.crawl.score"
CONTENT_FETCH_TIME_KEY: Final = "nutch.fetch.time"
LINKS_CUT_KEY: Final = "minutch.outlinks.cut"
"""Parse metadata: the number of links of a page that were not looked at, since as many were kept as
db.max.outlinks.per.page says.
"""
CANONICAL_KEY: Final = "minutch.canonical"
"""The page's own word for its address: RFC 6596."""
HREFLANG_KEY: Final = "minutch.hreflang"
VERSIONS_KEY: Final = "minutch.canonical.hreflang"
"""The languages in which a page says that it is, and that its canonical link's is: with blanks."""
IDS_KEY: Final = "minutch.ids"
"""Parse metadata: what a fragment may point to in a page, with blanks between."""
LINKS_EXTERNAL_KEY: Final = "minutch.outlinks.external"
"""Parse metadata: the number of links that db.ignore.external.links left out."""
TRUNCATED_KEY: Final = "http.content.truncated"
TRUNCATED_REASON_KEY: Final = "http.content.truncated.reason"
TOO_SLOW: Final = "time"
"""The reason where the time for one page was over."""
DAMAGED_KEY: Final = "http.content.damaged"
"""The content was damaged or cut off: what is there came before that. Nutch has no such key."""

_ONE: Final = bytes((0, 0, 0, 1))
"""The number of values of most names."""
_SHORT: Final = 128
"""Bytes from which on the length of a text takes more than one."""
_LONGEST_KEPT: Final = 512
"""Characters of all names up to which their order is remembered."""
_NEAR: Final = 4096
"""Bytes that are looked at together."""


class Metadata(dict[str, list[str]], Writable):
    """Names with one or more values each; Python's order is insertion order.

    `[name]` is the list of values; `get` is the first of them, `get_values` all or none.
    """

    __slots__ = ()
    class_name = "org.apache.nutch.metadata.Metadata"

    @classmethod
    def of(cls, values: Mapping[str, str | list[str]]) -> Self:
        """Metadata from a plain mapping."""
        return cls(
            {
                name: [value] if isinstance(value, str) else list(value)
                for name, value in values.items()
            }
        )

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
        """Returns the first value of `name`, as Metadata.get does in Nutch."""
        values = dict.get(self, name)
        return values[0] if values else default

    def get_values(self, name: str) -> list[str]:
        """Returns all values of `name` in order, as Metadata.getValues does in Nutch."""
        return dict.get(self, name) or []

    def field(self, name: str) -> str | None:
        """Returns the first value of a header field, whatever the case of its name (RFC 9110, 5.1):
        of the name as it is given if it is there.
        """
        value = self.get(name)
        return next(iter(self.field_values(name)), None) if value is None else value

    def field_values(self, name: str) -> list[str]:
        """Returns all values of a header field in order, whatever the case of its name."""
        folded, size = name.lower(), len(name)
        found: list[str] = []
        for key, values in self.items():
            if len(key) == size and (
                # Only ASCII is folded: field names are tokens.
                key == name or (key.lower() == folded and key.isascii() and name.isascii())
            ):
                found += values
        return found

    def add(self, name: str, value: str) -> None:
        """Adds a value to `name`."""
        self.setdefault(name, []).append(value)

    def set(self, name: str, value: str) -> None:
        """Makes `value` the only value of `name`."""
        self[name] = [value]

    def add_all(self, other: Metadata) -> None:
        """Adds all values of `other`, its names in Java's order."""
        for name in other.java_names():
            self.setdefault(name, []).extend(other[name])

    def java_names(self) -> Iterator[str]:
        """Returns the names in the order of Java's HashMap<String, ...>."""
        if len(self) < 2:
            return iter(self)
        names = list(self)
        return (names[i] for i in javahash.names_order(tuple(names)))

    @classmethod
    def read(cls, data: DataInput) -> Self:
        result = cls()
        left = data.read_int()
        while left > 0:
            left = _read_usual(data, left, result)
            if left:
                name, values = _read_any(data)
                if values:
                    result.setdefault(name, []).extend(values)
                left -= 1
        return result

    def write(self, out: DataOutput) -> None:
        out.write_int(len(self))
        buf = out.buf
        for name, before in _layout(self):
            values = self[name]
            if len(values) == 1:
                value = values[0]
                buf += before
                if len(value) < _SHORT and value.isascii():
                    buf.append(len(value))
                    buf += value.encode()
                else:
                    out.write_text(value)
                continue
            out.write_text(name)
            out.write_int(len(values))
            for value in values:
                out.write_text(value)

    def as_read(self) -> dict[str, list[str]]:
        """Returns the values in the order in which they will be read of what `write` writes."""
        return {name: values for name, _ in _layout(self) if (values := self[name])}

    def to_string(self, separator: str = " ", key_value_separator: str = "=") -> str:
        """Metadata.toString(separator, keyValueSeparator)."""
        return separator.join(
            f"{name}{key_value_separator}{value}"
            for name in self.java_names()
            for value in self[name]
        )

    def __str__(self) -> str:
        return self.to_string()


class MadeLater(list[str]):
    """The one value of a name that is made with those of other pages (`make_all`), or when somebody
    reads it: what many pages need costs half for each if it is done for all of them in turn.
    """

    __slots__ = ("item", "make")

    def __init__(self, make: Callable[[list[Any]], Sequence[str]], item: object) -> None:
        """`make` returns the values for items, each of which does not depend on the others."""
        super().__init__()
        self.make: Callable[[list[Any]], Sequence[str]] | None = make
        self.item = item

    @staticmethod
    def make_all(values: Iterable[MadeLater]) -> None:
        """Makes the values that are not there yet, those of one kind together."""
        groups: dict[Callable[[list[Any]], Sequence[str]], list[MadeLater]] = {}
        for value in values:
            if value.make is not None:
                groups.setdefault(value.make, []).append(value)
        for make, group in groups.items():
            made = make([value.item for value in group])
            for value, text in zip(group, made, strict=True):
                list.append(value, text)
                value.make = value.item = None

    def __len__(self) -> int:
        return 1 if self.make is not None else super().__len__()

    __hash__ = None  # as of any list

    def __reduce__(self) -> tuple[type[list[str]], tuple[list[str]]]:
        return list, ([*self],)


def _made_first(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    @wraps(method)
    def call(self: MadeLater, *args: Any, **options: Any) -> Any:
        self.make_all([self])
        return method(self, *args, **options)

    return call


_AS_THEY_ARE: Final = {"__getattribute__", "__new__", "__class_getitem__"}
# Whatever else a list has: with those that we use alone, `"de" in values` was False in a plugin.
for _name in vars(list).keys() - vars(MadeLater).keys() - _AS_THEY_ARE:
    setattr(MadeLater, _name, _made_first(_name))


def _read_usual(data: DataInput, left: int, found: Metadata) -> int:
    """Reads names that have one value, both short, up to the first of the `left` that has not; how
    many are left.
    """
    near = bytes(data.buf[data.pos : min(data.pos + _NEAR, data.end)])
    at = 0
    with suppress(IndexError):  # `near` ends within an entry
        while left:
            name_size = near[at]
            name_end = at + 1 + name_size
            value_at = name_end + len(_ONE) + 1
            value_size = near[value_at - 1]
            end = value_at + value_size
            if (
                name_size >= _SHORT
                or value_size >= _SHORT
                or end > len(near)
                or near[name_end : value_at - 1] != _ONE
            ):
                break
            found.add(decode_text(near[at + 1 : name_end]), decode_text(near[value_at:end]))
            at = end
            left -= 1
    data.pos += at
    return left


def _read_any(data: DataInput) -> tuple[str, list[str]]:
    """Returns a name and its values."""
    name, count = data.read_text(), data.read_int()
    return name, [data.read_text() for _ in range(count)]


def _layout(metadata: Metadata) -> Iterable[tuple[str, bytes]]:
    """Returns the names in Java's order, each with the bytes before its only value.

    Short ones are kept: the metadata of pages have the same names over and over.
    """
    # Only names decide the order, so that values need not be looked at.
    names = tuple(metadata)
    return _kept_layout(names) if sum(map(len, names)) <= _LONGEST_KEPT else _layout_of(names)


def _layout_of(names: tuple[str, ...]) -> tuple[tuple[str, bytes], ...]:
    return tuple((names[i], _before(names[i])) for i in javahash.names_order(names))


_kept_layout = lru_cache(maxsize=4096)(_layout_of)


def _before(name: str) -> bytes:
    """Returns the bytes before a name's only value."""
    out = DataOutput()
    out.write_text(name)
    out.write_int(1)
    return bytes(out.buf)


class MetaWrapper(Writable):
    """org.apache.nutch.metadata.MetaWrapper: a NutchWritable with metadata beside it, inside
    mergesegs.

    The value as NutchWritable writes it (a class index and the value), then a Metadata.
    """

    __slots__ = ("instance", "metadata")
    class_name = "org.apache.nutch.metadata.MetaWrapper"

    def __init__(self, instance: Writable, metadata: Metadata | None = None) -> None:
        self.instance = instance
        self.metadata = Metadata() if metadata is None else metadata

    @classmethod
    def read(cls, data: DataInput) -> Self:
        wrapper = lookup("org.apache.nutch.crawl.NutchWritable").read(data)
        assert isinstance(wrapper, GenericWritable)
        return cls(wrapper.instance, Metadata.read(data))

    def write(self, out: DataOutput) -> None:
        wrapper = lookup("org.apache.nutch.crawl.NutchWritable")
        wrapper(self.instance).write(out)  # type: ignore[call-arg]
        self.metadata.write(out)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MetaWrapper) and (self.instance, self.metadata) == (
            other.instance,
            other.metadata,
        )

    def __hash__(self) -> int:
        return hash(self.instance)

    def __str__(self) -> str:
        return f"GW[class={self.instance.class_name},value={self.instance}]"


def read_version(data: DataInput, name: str, known: tuple[int, ...]) -> int:
    """Returns a version byte that must be one of `known`; raises FormatError
    (VersionMismatchException in Hadoop).
    """
    start = data.pos
    version = data.read_byte()
    if version not in known:
        raise FormatError(
            f"version of {name} that minutch does not know",
            offset=start,
            expected=known,
            found=version,
        )
    return version
