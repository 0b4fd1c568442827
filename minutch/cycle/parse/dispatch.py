"""Decides which parsers a page is given to, and which result counts. The one home of that decision.

    parse-plugins.xml has the type     its parsers in that order, those that are active
    it does not                        the active parsers that claim the type in plugin.xml, those
                                       of `*` first
    none of these                      the active parsers of the entry `*`

They are tried in turn until one has a success in its result; else the last result with a reason is
taken. Matches org.apache.nutch.parse.{ParserFactory,ParsePluginsReader,ParseUtil}.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from xml.etree import ElementTree

from minutch.conf import Configuration
from minutch.cycle.parse.mime import clean_type
from minutch.cycle.parse.robotsdirectives import RobotsHeader
from minutch.errors import ConfigError, MinutchError, ParseError
from minutch.plugin.chains import HtmlParseFilters
from minutch.plugin.points import Parse, Parser, ParseResult
from minutch.plugin.repository import Extension, PluginRepository, instance_of
from minutch.records.parsedata import FAILED_EXCEPTION, ParseData, ParseStatus
from minutch.records.protocol import Content

log = logging.getLogger(__name__)

FILE_PROPERTY: Final = "parse.plugin.file"
DEFAULT_FILE: Final = "parse-plugins.xml"
MOST_TYPES: Final = 4096
"""Types whose parsers are remembered: servers make up types as they like."""
ANY: Final = "*"
UNSUCCESSFUL: Final = "org.apache.nutch.parse.ParseException: Unable to successfully parse content"
"""What Nutch gives for a reason when every parser threw an exception."""


class ParserNotFound(ParseError):
    """No active parser takes this type; the page stays unparsed (no record is written for it)."""


@dataclass(slots=True)
class ParsePlugins:
    """parse-plugins.xml: ids of extensions by type, and the short names of extensions."""

    by_type: dict[str, list[str]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)


def read_parse_plugins(text: str, path: str) -> ParsePlugins:
    """Returns the file's content. Raises ConfigError."""
    try:
        root = ElementTree.fromstring(text.strip())
    except ElementTree.ParseError as error:
        raise ConfigError(f"{path}: {error}") from error
    aliases = {
        alias.get("name", ""): alias.get("extension-id", "")
        for alias in root.iterfind("aliases/alias")
    }
    plugins = ParsePlugins(aliases=aliases)
    for element in root.iter("mimeType"):
        ids: list[str] = []
        for plugin in element.iter("plugin"):
            name = plugin.get("id", "")
            order = plugin.get("order", "")
            # ParsePluginsReader inserts by `order`, which counts from 1; insert takes any number.
            at = int(order) - 1 if order.isdecimal() else len(ids)
            ids.insert(at, aliases.get(name, name))
        if ids:
            plugins.by_type[element.get("name", "")] = ids
        else:
            log.warning("%s: no plugins for type %s", path, element.get("name"))
    return plugins


class ParserFactory:
    """Finds the parsers of a type, once per type."""

    def __init__(self, conf: Configuration) -> None:
        name = conf.get_text(FILE_PROPERTY)
        self._plugins = read_parse_plugins(conf.read_resource(name), name)
        self._extensions = PluginRepository.of(conf).extensions(Parser.point_id)
        self._found: dict[str, list[Parser]] = {}

    def parsers(self, content_type: str) -> list[Parser]:
        """Returns the parsers for a type, best first. Raises ParserNotFound."""
        found = self._found.get(content_type)  # nearly always a type without parameters
        if found is None:
            name = clean_type(content_type)
            if name not in self._found:
                if len(self._found) >= MOST_TYPES:
                    self._found.clear()
                self._found[name] = [
                    instance_of(extension, Parser) for extension in self._matching(name)
                ]
            found = self._found[name]
        if not found:
            raise ParserNotFound(
                f"no parser for type {content_type!r} (plugin.includes, {DEFAULT_FILE})"
            )
        return found

    def _matching(self, name: str) -> list[Extension]:
        ids = self._plugins.by_type.get(name)
        found = self._claiming(name) if ids is None else self._listed(ids, name)
        return found or self._listed(self._plugins.by_type.get(ANY, []), ANY)

    def _listed(self, ids: list[str], name: str) -> list[Extension]:
        result = []
        for wanted in ids:
            same = [extension for extension in self._extensions if extension.id == wanted]
            fitting = [
                extension for extension in same if name == ANY or claims(extension.parameters, name)
            ]
            if not same:
                log.debug("%s: %s is named for type %s but not active", DEFAULT_FILE, wanted, name)
            elif not fitting:
                log.warning(
                    "%s: %s is named for type %s, which its plugin.xml does not list",
                    DEFAULT_FILE,
                    wanted,
                    name,
                )
            # The file wins over plugin.xml, with the warning (ParserFactory.matchExtensions).
            result += (fitting or same)[:1]
        return result

    def _claiming(self, name: str) -> list[Extension]:
        """Returns the extensions that claim a type: first those for any type, the latest foremost,
        as in Nutch.
        """
        general = [
            extension
            for extension in self._extensions
            if extension.parameters.get("contentType") == ANY
        ]
        special = [
            extension
            for extension in self._extensions
            if extension not in general and claims(extension.parameters, name)
        ]
        # ParserFactory puts each general extension at the front.
        return [*reversed(general), *special]


def claims(parameters: Mapping[str, str], name: str) -> bool:
    """Tells whether plugin.xml's `contentType`, types with `|` between them (in fact a pattern),
    includes a type.
    """
    pattern = parameters.get("contentType")
    if pattern is None:
        return False
    return (
        pattern == ANY
        or re.fullmatch(pattern.replace("+", r"\+").replace(".", r"\."), name) is not None
    )


class ParseUtil:
    """Parses pages with the parsers of their type."""

    def __init__(self, conf: Configuration) -> None:
        """Makes parsers and parse filters, which may read files, before the first page.

        Raises ConfigError for settings of theirs that can't be, PluginError for one that can't be
        made.
        """
        self.factory = ParserFactory(conf)
        self._robots, self._clock = RobotsHeader(conf), conf.clock
        HtmlParseFilters(conf)
        for extension in PluginRepository.of(conf).extensions(Parser.point_id):
            # In the sandbox of a worker no file of a model or a rule could be read late.
            extension.instance()

    def parse(self, content: Content) -> ParseResult:
        """Returns the result of the first parser that succeeds. Raises ParserNotFound; all else is
        a failed status.
        """
        result = run_parsers(self.factory.parsers(content.content_type), content)
        # Here and not in a parser: the header holds for PDFs and feeds as for HTML.
        self._robots.apply(content, result, self._clock.now())
        return result


def run_parsers(parsers: list[Parser], content: Content) -> ParseResult:
    """Tries parsers in turn (see the module)."""
    result: ParseResult | None = None
    reason = UNSUCCESSFUL
    for parser in parsers:
        try:
            result = parser.get_parse(content)
        except MinutchError as error:
            log.warning("%s: %s: %s", content.url, type(parser).__name__, error)
            # The result of an earlier parser goes too: the last one's reason is stored.
            result, reason = None, str(error)
            continue
        # A plugin is anybody's code; ParseTimeout is no Exception and passes.
        except Exception as error:
            log.warning(
                "%s: %s: %s",
                content.url,
                type(parser).__name__,
                error,
                exc_info=log.isEnabledFor(logging.DEBUG),
            )
            result = None
            reason = (
                "out of memory"
                if isinstance(error, MemoryError)
                else f"{type(error).__name__}: {error}"
            )
            continue
        if result.is_any_success:
            return result
    # A parse without success still says why.
    return result if result else failed_result(content.url, reason)


class ParseTimeout(BaseException):
    """The time for a page is over; not an Exception, so that no parser and no plugin takes it for
    one of its own.
    """


def failed_result(url: str, reason: str) -> ParseResult:
    """Returns a result that says why there is none (ParseStatus.getEmptyParseResult)."""
    return ParseResult.of(url, Parse("", ParseData(ParseStatus.failed(FAILED_EXCEPTION, reason))))
