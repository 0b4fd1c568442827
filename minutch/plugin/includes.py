"""Finds the alternatives of `plugin.includes` and `plugin.excludes` that match no plugin: plugins
that minutch lacks, and misspelt ids.

    protocol-http|parse-(html|tika)|indexer-solr   →   protocol-http  parse-html  parse-tika
                                                   indexer-solr

Only groups and `|` are taken apart; an alternative keeps whatever else it has and is tried as a
pattern.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

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
    unknown = unmatched_alternatives(pattern, [*names, *sorted(NUTCH_PLUGINS)])
    return [(one, get_close_matches(one, names, cutoff=_CLOSE)) for one in unknown]


def unmatched_alternatives(pattern: str, names: Sequence[str]) -> list[str]:
    """Returns the alternatives of `pattern` that match none of `names` as a whole; empty if it
    can't be split.
    """
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
        if end < 0 or branch[end + 1 : end + 2] in ("*", "+", "?", "{"):
            result.append(branch)
            continue
        inner = expand(branch[start + 1 : end].removeprefix("?:"))
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
