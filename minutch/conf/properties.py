"""What is known of properties: the values that they take, those that have no effect here, what is
secret, and the classes that they name.

Numbers, truth values and sizes are read as Java and Hadoop do. `KINDS` lists the values that
properties take, where their defaults do not show it: words, lists, sizes, patterns, networks. It is
the only such list. A property that is not in it, and has neither a truth value nor a number as its
default, takes any text. `minutch/conf/check.py` checks values before the first job, and
`conf.wrong` is raised for the same reason where they are read. Values that need more than a look at
the text (classes, expressions, rule files) are checked only there.

`INERT` has the properties of conf/nutch-default.xml that can't mean anything here, each with the
reason; showproperties says it. tests/conf/test_keys.py holds this list and the sources together.

A property is secret by its name; whatever its name, so are a user and a password within a URL; and
so are the fields of a request by which a server knows who asks (RFC 9110, 11.6; RFC 6265, 8.2).
Everything obeys this that shows a configuration or hands a stored request on.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from ipaddress import ip_network
from typing import TYPE_CHECKING, Final, TypeVar

from minutch.errors import ConfigError

if TYPE_CHECKING:
    from minutch.conf.configuration import Configuration


BOOLEANS: Final = {"true": True, "false": False}

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_HEX: Final = re.compile(r"(-?)0[xX]((?<!-0[xX])[+-]?[0-9a-fA-F]+|[0-9a-fA-F]+)")
_FLOAT: Final = re.compile(
    r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?"
)
_HEX_FLOAT: Final = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
_SIZE: Final = re.compile(r"([+-]?[0-9]+(?:\.[0-9]+)?)\s*([kmgtpe]?)b?", re.IGNORECASE)
_FLOAT_NAMES: Final = {"Infinity": "inf", "+Infinity": "inf", "-Infinity": "-inf"}


def read_integer(text: str) -> int | None:
    """Reads a whole number, decimal or `0x…`."""
    if match := _HEX.fullmatch(text):
        return int(match[1] + match[2], 16)
    return int(text) if _INTEGER.fullmatch(text) else None


def read_double(text: str) -> float | None:
    """Reads a number as java.lang.Double.parseDouble does."""
    if match := _FLOAT.fullmatch(text):
        return float(_FLOAT_NAMES.get(match[1], match[1]))
    if match := _HEX_FLOAT.fullmatch(text):
        try:
            return float.fromhex(match[1])
        except OverflowError:
            # Java has an infinity for what is too large.
            return float("-inf") if text[0] == "-" else float("inf")
    return None


def read_size(text: str) -> int | None:
    """Reads a number of bytes with an optional binary prefix, `512m`, `1.5g`."""
    match = _SIZE.fullmatch(text)
    if not match:
        return None
    # Not float, which has no 1.1e exactly.
    return int(Decimal(match[1]) * (1 << 10 * " kmgtpe".index(match[2].lower() or " ")))


def float32(value: float) -> float:
    """Returns a number, rounded to 32 bits."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


@dataclass(frozen=True)
class Kind:
    """A kind of value: what it is called in an error, and what belongs to it."""

    expected: str
    fits: Callable[[str], bool]
    wrong: str = "\N{REPLACEMENT CHARACTER}"
    """A value that does not belong to it."""


def one_of(*words: str, ignore_case: bool = False) -> Kind:
    """Returns the kind that is one of some words."""
    known = {word.lower() for word in words} if ignore_case else set(words)
    text = f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]
    return Kind(text, lambda value: (value.lower() if ignore_case else value) in known)


def some_of(*words: str, but: str = "") -> Kind:
    """Returns the kind that is a list of some words, which `but` may precede."""
    return Kind(
        f"some of {', '.join(words)}",
        lambda value: all(item.removeprefix(but) in words for item in _items(value)),
    )


def _items(value: str) -> list[str]:
    return [item for item in re.split(r"[\s,]+", value) if item]


def _is_number(text: str, least: float, most: float) -> bool:
    try:
        return least <= float(text) <= most
    except ValueError:
        return False


def _numbers(least: float, most: float) -> Kind:
    expected = f"numbers from {least:g} to {most:g}, separated by commas"
    return Kind(
        expected, lambda value: all(_is_number(item, least, most) for item in _items(value))
    )


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _is_network(text: str) -> bool:
    if text.lower() in ("localhost", "loopback", "sitelocal"):
        return True
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True


WHOLE: Final = Kind(
    "a whole number", lambda value: re.fullmatch(r"[+-]?(\d+|0[xX][0-9a-fA-F]+)", value) is not None
)
_A_SIZE: Final = re.compile(r"[+-]?\d+(\.\d+)?[kmgtpe]?", re.IGNORECASE)
SIZE: Final = Kind("a size such as 512m or 4g", lambda value: _A_SIZE.fullmatch(value) is not None)
PATTERN: Final = Kind("a regular expression", _is_pattern, wrong="(")
NETWORKS: Final = Kind(
    "networks, addresses, loopback or sitelocal, separated by commas",
    lambda value: all(_is_network(item) for item in _items(value)),
)
POOL: Final = Kind(
    "three numbers: pools, connections in each, seconds",
    lambda value: (
        len(_items(value)) == 3 and all(item.isdecimal() and int(item) for item in _items(value))
    ),
)
NGRAMS: Final = Kind(
    "one or two whole numbers, separated by a comma",
    lambda value: 1 <= len(_items(value)) <= 2 and all(item.isdecimal() for item in _items(value)),
)

KINDS: Final[dict[str, Kind]] = {
    "crawl.compact": one_of("endless", "true", "false"),
    "db.canonical": one_of("none", "host", "domain"),
    "db.ignore.external.links.mode": one_of("byHost", "byDomain", ignore_case=True),
    "db.stats.score.quantiles": _numbers(0, 1),
    "fetcher.queue.mode": one_of("byHost", "byDomain", "byIP"),
    "generate.count.mode": one_of("host", "domain"),
    "hostdb.percentiles": _numbers(0, 100),
    "indexer.text": one_of("page", "own", "both"),
    "http.connection.pool.okhttp": POOL,
    "http.dns.resolver": one_of("cares", "system", ignore_case=True),
    "http.filter.ipaddress.exclude": NETWORKS,
    "http.filter.ipaddress.include": NETWORKS,
    "http.proxy.port": WHOLE,
    "http.proxy.type": one_of("HTTP", "HTTPS", "SOCKS", "SOCKS4", "SOCKS5", ignore_case=True),
    "http.robots.cache.memory": SIZE,
    "http.robots.parser": one_of("minutch", "reppy", ignore_case=True),
    "index.arbitrary.function.count": WHOLE,
    "lang.extraction.policy": some_of("detect", "identify"),
    "linkdb.inlink.layout": one_of("auto", "1.21", "1.20"),
    "minutch.browser.bytes.max": SIZE,
    "minutch.browser.memory.max": SIZE,
    "minutch.engine": one_of("local", "spark"),
    "minutch.memory": SIZE,
    "parse.js.strings": one_of("all", "urls"),
    "parser.caching.forbidden.policy": one_of("content", "none", "all"),
    "parser.html.impl": one_of("neko", "tagsoup", ignore_case=True),
    "parser.sandbox.allow": some_of("network", "files", "processes"),
    "partition.url.mode": one_of("byHost", "byDomain", "byIP"),
    "plugin.excludes": PATTERN,
    "plugin.includes": PATTERN,
    "scoring.depth.max.override": WHOLE,
    "scoring.depth.override.pattern": PATTERN,
    "scoring.similarity.model": one_of("cosine"),
    "scoring.similarity.ngrams": NGRAMS,
    "selenium.hub.protocol": one_of("http", "https", ignore_case=True),
    "tika.extractor": one_of("none", "boilerpipe"),
    "urlnormalizer.basic.host.idn": one_of("toAscii", "toUnicode", ignore_case=True),
}
"""Property → what its values are."""


INERT: dict[str, str] = {
    "db.injector.overwrite": "inject goes by its switch -overwrite alone, as in Nutch",
    "db.injector.update": "inject goes by its switch -update alone, as in Nutch",
    "file.content.ignored": (
        "nothing in Nutch reads it, and files could not be parsed by its default, true"
    ),
    "http.proxy.realm": (
        "credentials are shown to the proxy that they are for before it names a realm"
    ),
    "io.serializations": "classes of Java; all records are Writables",
    "nutch.jexl.disable.sandbox": (
        "expressions know values and no classes, so there is nothing to keep them from"
    ),
    "parser.html.impl": "parsers of Java; pages are parsed as browsers do",
    "selenium.firefox.allowed.hosts": "for geckodriver, and nothing in Nutch reads it",
    "selenium.firefox.enable.flash": "browsers have no Flash any more",
    "tika.config.file": "names classes of Tika, which is not here",
    "tika.htmlmapper.classname": (
        "a class of Java; every element is let through, as by the default one"
    ),
    "tika.uppercase.element.names": (
        "parse filters see the tree of a browser, where names have no case"
    ),
    "webdriver.chrome.driver": "no driver program stands between minutch and the browser",
}


HIDDEN: Final = "********"

_NAMES: Final = re.compile(
    r"password|passwd|passphrase|secret|token(?!_len)|credential(?!s?\.file)|licensekey|auth\.basic|jaas"
    r"|api[._-]?key|access[._-]?key|private[._-]?key|cookie(?=$|\.(?:value|text)$)",
    re.IGNORECASE,
)
# RFC 3986, 3.2.1: the userinfo, which ends at the @ before any slash.
_IN_URLS: Final = re.compile(r"(?<=://)[^\s/@?#]+(?=@)")
_FIELDS: Final = re.compile(
    r"^((?:proxy-)?authorization|cookie2?)([ \t]*:)[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*",
    re.IGNORECASE | re.MULTILINE,
)


def shown(name: str, value: str) -> str:
    """Returns the value of a property as it may be shown."""
    if not value:
        return value
    return HIDDEN if _NAMES.search(name) else _IN_URLS.sub(HIDDEN, value)


def shown_request(head: str) -> str:
    """Returns the head of a request as it may be handed on: without cookies and credentials."""
    return _FIELDS.sub(rf"\1\2 {HIDDEN}", head)


T = TypeVar("T")


MOVED: Final[Mapping[str, str]] = {
    "minutch.parse.simhash": "minutch.cycle.parse.simhash",
    "minutch.parse.signature": "minutch.cycle.parse.signature",
    "minutch.crawldb.schedule": "minutch.cycle.crawldb.schedule",
    "minutch.crawldb.adaptive": "minutch.cycle.crawldb.adaptive",
    "minutch.hostdb.processors": "minutch.cycle.hostdb.statistics",
    "minutch.cycle.hostdb.processors": "minutch.cycle.hostdb.statistics",
}
"""Modules of classes that users name in their configuration: where they were, and are."""


def class_named(
    conf: Configuration, of: str, name: str, built_in: Mapping[str, str], base: type[T]
) -> type[T]:
    """Returns the class `name`: a key of `built_in`, or `module:Class` or `module.Class`.

    `built_in` maps names to `module:Class`; modules that have moved (`MOVED`) are found by their
    old names, too. `of` is the property that holds the name. Raises ConfigError if there is no
    such class, or if it is no `base`.
    """
    module, _, class_name = built_in.get(name, name).replace(":", ".").rpartition(".")
    try:
        found = getattr(import_module(MOVED.get(module, module)), class_name)
    except (ImportError, AttributeError, ValueError) as exc:
        known = ", ".join(built_in)
        raise ConfigError(
            str(conf.wrong(of, f"{known} or module:Class", name)), hint=str(exc)
        ) from exc
    if not (isinstance(found, type) and issubclass(found, base)):
        raise conf.wrong(of, f"a class below {base.__module__}:{base.__name__}", name)
    return found
