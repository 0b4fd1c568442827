"""Finds probable mistakes in a configuration before the first job.

    wrong type          a property whose default is a truth value or a number, set to something else
                        error
    wrong word          what `conf.properties` does not allow: words, lists, sizes, patterns ...
                        error
    misspelt name       not a property, but nearly one
                        warning
    name of old         a property that Nutch has renamed
                        warning
    no such plugin      an alternative of plugin.includes that matches none
                        warning

Properties that nothing here knows and that resemble nothing are somebody's own, a plugin's or
Hadoop's, and pass. Only what the user sets is examined: nutch-default.xml, the shipped one or
Nutch's own, is right by definition.
"""

from __future__ import annotations

import logging
import re
from typing import Final

from minutch.conf import Configuration
from minutch.conf.properties import KINDS
from minutch.errors import ConfigError

log = logging.getLogger(__name__)

RENAMED: Final = {
    "crawl.gen.delay.days": "crawl.gen.delay",
    "db.default.fetch.interval": "db.fetch.interval.default",
    "db.max.fetch.interval": "db.fetch.interval.max",
    "db.max.inlinks": "linkdb.max.inlinks",
    "fetcher.threads.per.host": "fetcher.threads.per.queue",
    "fetcher.threads.per.host.by.ip": "fetcher.queue.mode",
    "generate.max.per.host": "generate.max.count",
    "generate.max.per.host.by.ip": "generate.count.mode",
    "http.robot.rules.whitelist": "http.robot.rules.allowlist",
    "urlfilter.domainblacklist.file": "urlfilter.domaindenylist.file",
}
"""Names that Nutch has given up, and their successors."""

DIVIDED: Final = {"db.ignore.internal.links": "linkdb.ignore.internal.links"}
"""Properties that were for parse and for invertlinks once, and what the latter reads now."""

UNLISTED: Final = frozenset(
    """
    crawl.datum.processor.overdue.time.limit crawldb.inject.filter.normalize.all
    crawldb.url.normalizers.scope creativecommons.exclude.unlicensed db.reader.stats.sort
    db.reader.topn db.reader.topn.min db.signature.text_profile.sec_sort_lex
    deduplication.compare.order deduplication.group.mode doIndex domain.statistics.mode
    fetcher.timelimit free.generator.filter free.generator.normalize generate.curTime
    generate.expr generate.filter generate.max.num.segments generate.normalise generate.topN
    hostdb.dump.field.header hostdb.dump.homepages hostdb.dump.hostnames
    hostdb.filter.expression hostdb.reading.crawldb hostdb.url.limit http.auth.verbose
    http.tls.supported.cipher.suites http.tls.supported.protocols
    index.metadata.multivalued.fields indexer.additional.params indexer.binary.base64
    indexer.url.filters indexer.url.normalizers injector.current.time
    libselenium.page.load.delay link.analyze.iteration link.analyze.normalize.score
    link.analyze.rank.one linkdb.regex linkdb.url.filters linkdb.url.normalizer
    linkdb.url.normalizer.scope noCommit nutch.conf.uuid parsefilter.regex.file
    parsefilter.regex.rules partition.url.seed segment.dump.dir segment.merger.filter
    segment.merger.normalizer segment.merger.segmentName segment.merger.slice
    subcollection.metadata.source subcollections.config urlfilter.automaton.rules
    urlfilter.domain.rules urlfilter.domaindenylist.file urlfilter.domaindenylist.rules
    urlfilter.prefix.rules urlfilter.regex.rules urlfilter.suffix.rules urlnormalizer.hosts.file
    urlnormalizer.hosts.rules urlnormalizer.regex.rules urlnormalizer.slashes.file
    urlnormalizer.slashes.rules warc.exporter.only.successful.responses webgraph.url.filters
    webgraph.url.normalizers
    """.split()  # noqa: SIM905
)
"""Properties that Nutch reads and its nutch-default.xml does not list."""

FLOATS: Final = {"fetcher.exceptions.per.queue.clear.after", "generate.min.score"}
"""Properties with a whole number for a default that take fractions, too."""

_FAMILIES: Final = re.compile(
    r"(urlnormalizer\.(order|scope|regex\.file)|http\.auth\.basic|index\.arbitrary|mapreduce|mapred|hadoop|io|fs|dfs)\..*"
)
"""Names that are made up by the user in part, and Hadoop's."""
_LIKENESS: Final = 0.9
_KINDS: Final = (
    (re.compile(r"true|false"), re.compile(r"(?i)true|false"), "true or false"),
    (re.compile(r"-?\d+"), re.compile(r"[+-]?(\d+|0[xX][0-9a-fA-F]+)"), "a whole number"),
    (
        re.compile(r"-?\d*\.\d+[fd]?"),
        re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?|NaN|[+-]?Infinity"),
        "a number",
    ),
)
"""Pattern of a default, pattern of the values that its property may have, name of the kind."""
_REFERENCE: Final = re.compile(r"\$\{([^${}]+)\}")
_TRUTHS: Final = {
    "yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false",
}  # fmt: skip


def check(conf: Configuration) -> None:
    """Warns of what may be wrong. Raises ConfigError for a value that can't be right."""
    # A list: reading a value may not change what is gone through.
    for name in filter(conf.is_set, list(conf)):
        default = conf.default(name)
        if default is None:
            _check_name(conf, name)
        elif name in KINDS:
            _check_kind(conf, name)
        else:
            _check_type(conf, name, default)
    for old, new in DIVIDED.items():
        mine = conf.get_boolean(old)
        # Who has said both, or gets what was meant, needs no warning.
        if conf.is_set(old) and not conf.is_set(new) and mine != conf.get_boolean(new):
            log.warning(
                "%s (%s) is for parse alone; invertlinks reads %s, which is %s",
                old,
                conf.source(old),
                new,
                conf.get(new),
            )


def _check_name(conf: Configuration, name: str) -> None:
    where = conf.source(name)
    if name in RENAMED:
        log.warning("%s (%s) is not read any more, its successor is %s", name, where, RENAMED[name])
    elif name not in UNLISTED and not _FAMILIES.fullmatch(name):
        # Not nearer than this: somebody's own property is no mistake because it looks like another.
        close = resembling(name, [*conf.defaults, *UNLISTED], _LIKENESS)
        if close:
            log.warning("%s (%s) is not a property of Nutch: did you mean %s?", name, where, close)


def _check_kind(conf: Configuration, name: str) -> None:
    value, kind = conf.get_text(name).strip(), KINDS[name]
    if value and not kind.fits(value):
        default = conf.expand(conf.default(name) or "").strip()
        hint = f"the default is {default}" if default else ""
        raise ConfigError(str(conf.wrong(name, kind.expected, value)), hint=hint)


def _check_type(conf: Configuration, name: str, default: str) -> None:
    value, default = conf.get_text(name).strip(), _shipped(conf, default)
    for like, allowed, kind in _KINDS[2:] if name in FLOATS else _KINDS:
        # The default tells the kind: "1.0" is a number, "true" a truth value, "" anything.
        if like.fullmatch(default) or (name in FLOATS and default.isdigit()):
            if value and not allowed.fullmatch(value):
                meant = _TRUTHS.get(value.lower(), "") if kind.startswith("true") else ""
                hint = f"did you mean {meant}?" if meant else f"the default is {default}"
                raise ConfigError(str(conf.wrong(name, kind, value)), hint=hint)
            return


def _shipped(conf: Configuration, default: str) -> str:
    """Returns a default that is another's value as that other's default: what the user has set
    there says nothing of the kind, as a whole number of seconds where fractions may be.
    """
    while (other := _REFERENCE.fullmatch(default)) is not None:
        default = conf.default(other[1]) or ""
    return default.strip()


def resembling(word: str, known: list[str], likeness: float = 0.75) -> str | None:
    """Returns the one of `known` that resembles `word` most."""
    # Few commands have a word to look for: difflib is loaded by those.
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, known, 1, likeness)), None)
