"""Reads plugin.xml, in which a plugin declares its extensions; and finds the alternatives of
`plugin.includes` and `plugin.excludes` that match no plugin: plugins that minutch lacks, and
misspelt ids.

    <plugin id="urlfilter-example" name="Example">
      <requires><import plugin="nutch-extensionpoints"/></requires>
      <stands-for plugin="urlfilter-other"/>
      <extension-point id="…" name="…"/>
      <extension point="org.apache.nutch.net.URLFilter">
        <implementation id="org.example.ExampleFilter" class="example:ExampleFilter">
          <parameter name="file" value="example.txt"/>
        </implementation>
      </extension>
    </plugin>

Nutch's format with two differences. `class` is Python's, `module:Class` with the module's file in
the plugin's folder. `stands-for` names another plugin of Nutch's whose work this one does:
plugin.includes may choose it by that id too. `id` is the name that properties such as
urlfilter.order and files such as parse-plugins.xml use; for Nutch's own plugins it is Nutch's.
Where Nutch orders by a class name that is not its id, `nutch-class` gives that name.

    protocol-http|parse-(html|tika)|indexer-solr   →   protocol-http  parse-html  parse-tika
                                                   indexer-solr

Of an expression only groups and `|` are taken apart; an alternative keeps whatever else it has and
is tried as a pattern.

Source: org.apache.nutch.plugin.PluginManifestParser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from xml.parsers import expat

from minutch.errors import PluginError

FILE_NAME = "plugin.xml"
_NUTCH = """
protocol-file protocol-foo protocol-ftp protocol-htmlunit protocol-http protocol-httpclient
protocol-interactiveselenium protocol-okhttp protocol-selenium lib-htmlunit lib-http lib-selenium
creativecommons feed headings language-identifier microformats-reltag parse-ext parse-html parse-js
parse-metatags parse-tika parse-zip parsefilter-debug parsefilter-naivebayes parsefilter-regex
lib-nekohtml lib-xml index-anchor index-arbitrary index-basic index-geoip index-jexl-filter
index-links index-metadata index-more index-replace index-static mimetype-filter subcollection tld
urlmeta exchange-jexl indexer-cloudsearch indexer-csv indexer-dummy indexer-elastic indexer-kafka
indexer-opensearch-1x indexer-rabbit indexer-solr lib-rabbitmq publish-rabbitmq scoring-depth
scoring-link scoring-metadata scoring-opic scoring-orphan scoring-similarity lib-regex-filter
urlfilter-automaton urlfilter-domain urlfilter-domaindenylist urlfilter-fast urlfilter-ignoreexempt
urlfilter-prefix urlfilter-regex urlfilter-suffix urlfilter-validator urlnormalizer-ajax
urlnormalizer-basic urlnormalizer-host urlnormalizer-pass urlnormalizer-protocol
urlnormalizer-querystring urlnormalizer-regex urlnormalizer-slash nutch-extensionpoints
"""
NUTCH_PLUGINS = frozenset(_NUTCH.split())
"""The ids of all plugins of Nutch 1.23 (the folders of src/plugin)."""

_MAX = 1000
_CLOSE = 0.85
"""Minimum similarity (difflib's ratio) at which an id is suggested."""
_BEFORE_GROUP = re.compile(r"(?:[^\\(\[]|\\.)*\((?!\?(?!:))")


@dataclass(frozen=True)
class Implementation:
    """An `<implementation>`: the extension point that it extends, its names and parameters."""

    point: str
    id: str
    path: str
    nutch_class: str
    parameters: dict[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which an ordering property may refer to it."""
        module, _, name = self.path.partition(":")
        return tuple(
            dict.fromkeys(
                n for n in (self.id, self.nutch_class, self.path, f"{module}.{name}") if n
            )
        )

    @property
    def class_name(self) -> str:
        """Name of its Java class if known: Nutch's HashMaps are ordered by it."""
        return self.nutch_class or self.id


@dataclass(frozen=True)
class Manifest:
    """The content of a plugin.xml."""

    folder: Path
    id: str
    name: str
    requires: tuple[str, ...]
    points: tuple[str, ...]
    implementations: tuple[Implementation, ...]
    stands_for: tuple[str, ...] = ()
    has_jars: bool = False
    package: str = ""
    """The name of the installed package that it is; empty for one in a folder."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids by which plugin.includes and plugin.excludes may select it, its own first."""
        return (self.id, *self.stands_for)

    @property
    def is_java(self) -> bool:
        """True for a plugin of Nutch's own, whose classes Python can't load. A folder with modules
        is none, however its classes are written.
        """
        if self.has_jars:
            return True
        # Java's names have dots alone.
        is_java = any(":" not in one.path for one in self.implementations)
        return is_java and not any(self.folder.glob("*.py"))


def read_manifest(folder: Path) -> Manifest:
    """Reads `folder`/plugin.xml. Raises PluginError with file and line."""
    path = folder / FILE_NAME
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise PluginError(f"{path}: can't be read: {exc.strerror}") from exc
    reader = _Reader(path)
    reader.parse(data)
    if not reader.id:
        raise PluginError(f"{path}: the <plugin> element has no id")
    return Manifest(
        folder,
        reader.id,
        reader.name,
        tuple(reader.requires),
        tuple(reader.points),
        tuple(reader.implementations),
        tuple(reader.stands_for),
        reader.has_jars,
    )


class _Reader:
    """A collector of a manifest's elements while expat parses it; unknown elements are skipped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.id = self.name = ""
        self.requires: list[str] = []
        self.stands_for: list[str] = []
        self.points: list[str] = []
        self.implementations: list[Implementation] = []
        self.has_jars = False
        self._point = ""
        self._handlers = {
            "plugin": self._plugin,
            "import": self._import,
            "stands-for": self._stands_for,
            "library": self._library,
            "extension-point": self._extension_point,
            "extension": self._extension,
            "implementation": self._implementation,
            "parameter": self._parameter,
        }

    def parse(self, data: bytes) -> None:
        self._parser = parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        # A billion laughs, or a file of this machine in a parameter.
        parser.EntityDeclHandler = self._entity
        try:
            parser.Parse(data, True)
        except expat.ExpatError as exc:
            raise PluginError(
                f"{self.path}, line {exc.lineno}: {expat.ErrorString(exc.code)}"
            ) from exc
        except (LookupError, ValueError) as exc:  # encodings that Python does not have for XML
            raise PluginError(f"{self.path}, line {parser.CurrentLineNumber}: {exc}") from exc

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        handler = self._handlers.get(tag)
        if handler:
            handler(attributes)

    def _entity(self, name: str, *_: object) -> None:
        line = self._parser.CurrentLineNumber
        raise PluginError(f"{self.path}, line {line}: entity declarations are not allowed ({name})")

    def _plugin(self, attributes: dict[str, str]) -> None:
        self.id = attributes.get("id", "")
        self.name = attributes.get("name", "")

    def _import(self, attributes: dict[str, str]) -> None:
        self.requires.append(attributes.get("plugin", ""))

    def _stands_for(self, attributes: dict[str, str]) -> None:
        self.stands_for.append(attributes.get("plugin", ""))

    def _library(self, attributes: dict[str, str]) -> None:
        self.has_jars = self.has_jars or attributes.get("name", "").endswith(".jar")

    def _extension_point(self, attributes: dict[str, str]) -> None:
        self.points.append(attributes.get("id", ""))

    def _extension(self, attributes: dict[str, str]) -> None:
        self._point = attributes.get("point", "")

    def _implementation(self, attributes: dict[str, str]) -> None:
        path = attributes.get("class", "")
        if not path:
            line = self._parser.CurrentLineNumber
            raise PluginError(f"{self.path}, line {line}: <implementation> has no class")
        self.implementations.append(
            Implementation(
                self._point, attributes.get("id", path), path, attributes.get("nutch-class", ""), {}
            )
        )

    def _parameter(self, attributes: dict[str, str]) -> None:
        # A `<parameter>` elsewhere belongs to nothing.
        if self.implementations:
            self.implementations[-1].parameters[attributes.get("name", "")] = attributes.get(
                "value", ""
            )


def missing_plugins(pattern: str, names: Sequence[str]) -> list[str]:
    """Returns the alternatives that match no plugin in `names`, but one of Nutch's."""
    return [
        one
        for one in unmatched_alternatives(pattern, names)
        if _matches_any(one, sorted(NUTCH_PLUGINS))
    ]


def misspelt_plugins(pattern: str, names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Returns the alternatives that match neither one of `names` nor a plugin of Nutch's, each with
    similar ids.
    """
    # Nutch's own are no mistakes: a configuration may be shared with it.
    unknown = unmatched_alternatives(pattern, [*names, *sorted(NUTCH_PLUGINS)])
    return [(one, get_close_matches(one, names, cutoff=_CLOSE)) for one in unknown]


def unmatched_alternatives(pattern: str, names: Sequence[str]) -> list[str]:
    """Returns the alternatives of `pattern` that fit none of `names`; empty if it is broken."""
    alternatives = expand(pattern)
    if len(alternatives) > _MAX:
        return []
    return [a for a in alternatives if a and not _matches_any(a, names)]


def expand(pattern: str) -> list[str]:
    """Returns all alternatives of a pattern, with its groups expanded."""
    result: list[str] = []
    for branch in _split(pattern):
        start = _group_start(branch)
        end = _group_end(branch, start) if start >= 0 else -1
        # A repeated group stays a pattern.
        if end < 0 or branch[end + 1 : end + 2] in ("*", "+", "?", "{"):
            result.append(branch)
            continue
        inner = expand(branch[start + 1 : end].removeprefix("?:"))
        # Groups multiply: ten of ten words are ten billion.
        tails = expand(branch[end + 1 :])[: _MAX + 1]
        result += [branch[:start] + middle + tail for middle in inner[: _MAX + 1] for tail in tails]
        if len(result) > _MAX:
            break
    return list(dict.fromkeys(result))


def _split(pattern: str) -> list[str]:
    """Splits a pattern at each `|` outside of groups, classes and escapes."""
    branches, depth, start, in_class, at = [], 0, 0, False, 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char == "|" and depth == 0:
            branches.append(pattern[start:at])
            start = at + 1
        else:
            depth += (char == "(") - (char == ")")
        at += 1
    return [*branches, pattern[start:]]


def _group_start(branch: str) -> int:
    """Returns the position of the first group if it is plain or non-capturing and no class precedes
    it, else -1.
    """
    match = _BEFORE_GROUP.match(branch)
    return match.end() - 1 if match else -1


def _group_end(branch: str, start: int) -> int:
    depth = at = 0
    for at in range(start, len(branch)):
        if branch[at - 1] != "\\":
            depth += (branch[at] == "(") - (branch[at] == ")")
            if depth == 0:
                return at
    return -1


def _matches_any(alternative: str, names: Sequence[str]) -> bool:
    try:
        compiled = re.compile(alternative)
    except re.error:
        return True
    return any(compiled.fullmatch(name) for name in names)
