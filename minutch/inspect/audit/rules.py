"""Reads the rules of an audit: those of `rules.toml`, and the user's."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib.resources import files
from typing import Any, Final

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.plugin.repository import is_included

OWN: Final = "audit-rules.toml"
"""The user's rules, in a folder of configuration."""
SEVERITIES: Final = ("error", "warning", "notice")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; what its fields are stands in `rules.toml`."""

    id: str
    severity: str
    says: str
    sql: str
    needs: str = ""
    set: str = ""
    where: Mapping[str, str] = field(default_factory=dict)


def rules_of(conf: Configuration) -> dict[str, Rule]:
    """Returns all rules by their ids, errors first. Raises ConfigError for a file that is no list
    of rules.
    """
    shipped = files("minutch.inspect.audit").joinpath("rules.toml").read_text(encoding="utf-8")
    found = {rule.id: rule for rule in _read(shipped, "rules.toml")}
    if (own := conf.resource(OWN)) is not None:
        found |= {rule.id: rule for rule in _read(conf.read_resource(OWN), str(own))}
    found = {
        name: replace(rule, needs="") if _is_configured(rule, conf) else rule
        for name, rule in found.items()
    }
    rank = {rule.id: SEVERITIES.index(rule.severity) for rule in found.values()}
    return {name: found[name] for name in sorted(found, key=lambda name: rank[name])}


def _is_configured(rule: Rule, conf: Configuration) -> bool:
    """Returns whether the configuration keeps what a rule needs; then a crawl without any of it has
    none, as a site without a single description.
    """
    return bool(rule.where) and all(
        is_included(conf, value)
        if name == "plugin.includes"
        else value in re.split(r"[,\s]+", conf.get(name, ""))
        for name, value in rule.where.items()
    )


def _read(text: str, where: str) -> Iterator[Rule]:
    try:
        entries = tomllib.loads(text).get("rule", [])
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(f"{where}: {exc}") from exc
    for number, entry in enumerate(entries, 1):
        yield _rule(entry, f"{where}: rule {number}")


def _rule(entry: Any, where: str) -> Rule:
    names = [one.name for one in fields(Rule)]
    if not isinstance(entry, dict) or not all(
        isinstance(value, dict if name == "where" else str) for name, value in entry.items()
    ):
        raise ConfigError(f"{where}: expected texts {', '.join(names)}")
    if unknown := entry.keys() - set(names):
        raise ConfigError(f"{where}: {', '.join(sorted(unknown))} is none of {', '.join(names)}")
    if missing := [name for name in names[:4] if not entry.get(name)]:
        raise ConfigError(f"{where}: no {' and no '.join(missing)}")
    if entry["severity"] not in SEVERITIES:
        raise ConfigError(
            f"{where}: severity: expected {', '.join(SEVERITIES)}, found {entry['severity']}"
        )
    return Rule(**entry)
