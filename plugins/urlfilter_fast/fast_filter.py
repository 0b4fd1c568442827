"""urlfilter-fast: rejects paths by host and domain (fast-urlfilter.txt).

    file     = *( section rule* )             "#" starts a comment anywhere
    section  = ( "Host" | "Domain" ) name     "Domain ." is for all
    rule     = "DenyPath" regex | "DenyPathQuery" regex     on the path; on path and query

The regex may match anywhere; `.*` and `.?` reject everything. First the rules of the host, then
those of the host as a domain, then those of ever shorter domains, then those of `.`. Malformed URLs
are rejected, as are those that are too long (as a whole, the path, the query).

Properties: urlfilter.fast.file (plain, .gz or .bz2), urlfilter.fast.url.max.length,
urlfilter.fast.url.path.max.length and urlfilter.fast.url.query.max.length (-1: no limit).

Source: org.apache.nutch.urlfilter.fast.FastURLFilter.
"""

from __future__ import annotations

import bz2
import gzip
import logging
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from minutch.conf import Configuration
from minutch.errors import ConfigError, UrlError
from minutch.plugin.points import URLFilter
from minutch.urls.javaregex import JavaRegex
from minutch.urls.parts import Url, parse
from minutch.urls.rules import file_name, rule_lines, rule_place

log = logging.getLogger(__name__)

_CATCH_ALL = re.compile(r"\s*DenyPath(?:Query)?\s+\.[*?]\s*", re.ASCII)
_OPENERS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".bz2": bz2.decompress}


class HostRule:
    """One rule; `regex` None rejects everything. `text` is its line, `line` the number of that."""

    def __init__(self, regex: JavaRegex | None, with_query: bool, text: str, line: int) -> None:
        self.regex = regex
        self.with_query = with_query
        self.text = text
        self.line = line

    def denies(self, url: Url) -> bool:
        return self.regex is None or self.regex.search(url.file if self.with_query else url.path)


class FastURLFilter(URLFilter):
    """Rejects by the rules of the URL's host and domains."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.max_length = conf.get_int("urlfilter.fast.url.max.length")
        self.max_path = conf.get_int("urlfilter.fast.url.path.max.length")
        self.max_query = conf.get_int("urlfilter.fast.url.query.max.length")
        self.hosts: dict[str, list[HostRule]] = {}
        self.domains: dict[str, list[HostRule]] = {}
        self.timeouts = 0
        self._place = rule_place(conf, "urlfilter.fast")
        self._read(_rule_text(conf))

    def _read(self, text: str) -> None:
        section: list[HostRule] | None = None
        for number, raw in enumerate(rule_lines(text), 1):
            line = raw.partition("#")[0].strip()
            words = line.split()
            if line.startswith(("Host", "Domain")):
                if len(words) < 2:
                    raise ConfigError(
                        f"{self._place}, line {number}: {line!r} names no host or domain"
                    )
                table = self.hosts if line.startswith("Host") else self.domains
                section = table.setdefault(words[1], [])
            elif line and section is not None:
                self._add(section, line, words, number)

    def _add(self, section: list[HostRule], line: str, words: list[str], number: int) -> None:
        if _CATCH_ALL.fullmatch(line):
            # DenyAllRule: no search of a URL for what is always there.
            section.append(HostRule(None, False, line, number))
        elif line.startswith("DenyPath") and len(words) > 1:
            try:
                section.append(
                    HostRule(JavaRegex(words[1]), line.startswith("DenyPathQuery"), line, number)
                )
            except ConfigError as exc:
                log.warning("%s, line %d is skipped: %s", self._place, number, exc)
        else:
            log.warning("%s, line %d is skipped: not a rule: %s", self._place, number, line)

    def filter(self, url: str) -> str | None:
        return None if self._denial(url) else url

    def explain(self, url: str) -> str:
        return self._denial(url) or f"{self._place}: no rule denies it"

    def _denial(self, url: str) -> str:
        """Why the URL is rejected; empty if it passes."""
        if _is_longer(url, self.max_length):
            return "longer than urlfilter.fast.url.max.length"
        try:
            parsed = parse(url)
        except UrlError as exc:
            return str(exc)
        if _is_longer(parsed.path, self.max_path):
            return "a path longer than urlfilter.fast.url.path.max.length"
        if _is_longer(parsed.query or "", self.max_query):
            return "a query longer than urlfilter.fast.url.query.max.length"
        return self._rule_against(parsed)

    def _rule_against(self, url: Url) -> str:
        rule = None
        try:
            for rule in (rule for rules in self._rules(url.host) for rule in rules):
                if rule.denies(url):
                    return f"{self._place}:{rule.line}: {rule.text}"
        except TimeoutError:
            self.timeouts += 1
            report = log.warning if self.timeouts == 1 else log.debug
            report("urlfilter-fast: a rule took too long, rejected: %s", url)
            return f"{self._place}:{rule.line}: took too long" if rule else self._place
        return ""

    def _rules(self, host: str) -> Iterator[list[HostRule]]:
        domains = self.domains
        yield self.hosts.get(host, [])
        # `Domain example.org` holds for the host of that name, too.
        yield domains.get(host, [])
        at = host.find(".") + 1
        while at:
            yield domains.get(host[at:], [])
            at = host.find(".", at) + 1
        yield domains.get(".", [])


def _is_longer(text: str, limit: int) -> bool:
    """Java counts UTF-16 units."""
    return limit != -1 and len(text.encode("utf-16-le", "surrogatepass")) > 2 * limit


def _rule_text(conf: Configuration) -> str:
    """Returns the rule file, decompressed by its name's ending; `file:` URLs are files too."""
    name = file_name(conf, "urlfilter.fast.file").removeprefix("file://").removeprefix("file:")
    opener = _OPENERS.get(Path(name).suffix)
    if opener is None:
        return conf.read_resource(name)
    path = conf.resource(name)
    if path is None:
        raise ConfigError(f"urlfilter.fast.file: no file {name}")
    try:
        return opener(path.read_bytes()).decode("utf-8", "replace")
    # Of a damaged stream zlib and bz2 raise errors of their own.
    except (OSError, EOFError, ValueError, zlib.error) as exc:
        raise ConfigError(f"{path}: can't be read: {exc}") from exc
