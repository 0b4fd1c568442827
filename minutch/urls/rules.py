"""The rules of URL filters and normalizers: where they are found, and which URLs need not be put to
them one by one.

Rules stand inline in a property, or in a file that a property names. A normalizer may say which
URLs it leaves alone, a filter which it accepts or rejects: by strict patterns, which match whole
URLs between marks (`javaregex.derivative`). `plainautomaton` joins those of all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.urls.javaregex.derivative import ANYTHING, NOTHING, Pattern

log = logging.getLogger(__name__)


def rules_text(
    conf: Configuration,
    rules: str,
    file: str,
    parameters: Mapping[str, str] | None = None,
    *,
    empty_counts: bool = True,
) -> str | None:
    """Returns the text of the rules; None where the file is not there.

    `rules` is the property of inline rules (`empty_counts`: even if it is empty), `file` that of
    the file's name; the parameter `file` of plugin.xml is the fallback. ConfigError if none of them
    is set.
    """
    inline = conf.get(rules)
    if inline is not None and (inline or empty_counts):
        return inline
    name = file_name(conf, file, parameters)
    return None if conf.resource(name) is None else conf.read_resource(name)


def allowing_rules(
    conf: Configuration, rules: str, file: str, parameters: Mapping[str, str]
) -> str:
    """Returns the text of rules of which one has to allow a URL: without the file none does."""
    text = rules_text(conf, rules, file, parameters)
    if text is None:
        plugin, name = (
            rules.removesuffix(".rules").replace(".", "-"),
            file_name(conf, file, parameters),
        )
        log.warning("%s: no rule file %s, every URL is rejected", plugin, name)
    return text or ""


def file_name(conf: Configuration, file: str, parameters: Mapping[str, str] | None = None) -> str:
    """Returns the name of the rule file; ConfigError if there is none."""
    name = conf.get(file) or (parameters or {}).get("file", "").strip()
    if not name:
        raise ConfigError(f"property {file} names no rule file")
    return name


def rule_place(
    conf: Configuration, prefix: str, parameters: Mapping[str, str] | None = None
) -> str:
    """Names the property or file of the rules `PREFIX.rules` or `PREFIX.file`, in messages."""
    if conf.get(f"{prefix}.rules") is not None:
        return f"{prefix}.rules ({conf.source(f'{prefix}.rules')})"
    name = file_name(conf, f"{prefix}.file", parameters)
    return str(conf.resource(name) or name)


def rule_lines(text: str) -> list[str]:
    """Returns lines as java.io.BufferedReader splits them."""
    # splitlines would split at U+2028 and others, which Java does not.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if not lines[-1] else lines


@dataclass(frozen=True, slots=True)
class Untouched:
    """The URLs that a normalizer does not change: those that `normal` matches and `touched` does
    not.

    `cuts`: it cuts off the fragment of a URL that is normal but for that. `squeezes`: it takes
    empty segments, and climbs above the root, out of a URL without query, fragment and escapes that
    is normal but for those; or takes out no more than some empty segments, if `collapses`.
    """

    normal: Pattern = ANYTHING
    touched: Pattern = NOTHING
    cuts: bool = False
    squeezes: bool = False
    collapses: bool = False


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The URLs that a filter certainly accepts, and those that it certainly rejects, if they have
    no loop.

    `no_loops` says that it rejects URLs with a segment that comes back at every second place.
    """

    accepted: Pattern
    rejected: Pattern
    no_loops: bool = False
