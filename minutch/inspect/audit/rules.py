"""Reads the rules of an audit: those of `rules.toml`, and the user's."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import Any, Final

from minutch.conf import Configuration
from minutch.errors import ConfigError

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


def rules_of(conf: Configuration) -> dict[str, Rule]:
    """Returns all rules by their ids, errors first. Raises ConfigError for a file that is no list
    of rules.
    """
    shipped = files("minutch.inspect.audit").joinpath("rules.toml").read_text(encoding="utf-8")
    found = {rule.id: rule for rule in _read(shipped, "rules.toml")}
    if (own := conf.resource(OWN)) is not None:
        found |= {rule.id: rule for rule in _read(conf.read_resource(OWN), str(own))}
    rank = {rule.id: SEVERITIES.index(rule.severity) for rule in found.values()}
    return {name: found[name] for name in sorted(found, key=lambda name: rank[name])}


def _read(text: str, where: str) -> Iterator[Rule]:
    try:
        entries = tomllib.loads(text).get("rule", [])
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(f"{where}: {exc}") from exc
    for number, entry in enumerate(entries, 1):
        yield _rule(entry, f"{where}: rule {number}")


def _rule(entry: Any, where: str) -> Rule:
    names = [field.name for field in fields(Rule)]
    if not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
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
