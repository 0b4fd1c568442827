"""The alternatives of `plugin.includes` that match nothing, for the line that says so.

    protocol-http|parse-(html|tika)|indexer-solr   →   protocol-http  parse-html  parse-tika  indexer-solr

Only groups and `|` are taken apart; an alternative keeps whatever else it has and is tried as a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_MAX = 1000
_BEFORE_GROUP = re.compile(r"(?:[^\\(\[]|\\.)*\((?!\?(?!:))")


def unmatched_alternatives(pattern: str, names: Sequence[str]) -> list[str]:
    """The alternatives of `pattern` that match none of `names` as a whole; empty if it can't be taken apart."""
    alternatives = expand(pattern)
    if len(alternatives) > _MAX:
        return []
    return [a for a in alternatives if a and not _matches_any(a, names)]


def expand(pattern: str) -> list[str]:
    """All alternatives of a pattern with its groups multiplied out."""
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
    """The branches between `|` outside of groups, classes and escapes."""
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
    """Where the first group begins, if it is a plain or a non-capturing one and no class stands before it; else -1."""
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
