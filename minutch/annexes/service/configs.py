"""Manages the configurations of the service: `default`, with which it was started, and those that
clients have created from it.

Source: org.apache.nutch.service.impl.ConfManagerImpl. Invalid values are refused when they are set,
not when a job starts.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from minutch.annexes.service.requestchecks import RequestRefused
from minutch.conf import DEFAULTS, Configuration
from minutch.conf.check import check
from minutch.conf.properties import shown
from minutch.errors import ConfigError

DEFAULT: Final = "default"
MOST: Final = 1000
"""Maximum number of configurations, so that clients can't exhaust memory."""


class Configs:
    """The configurations, by name."""

    def __init__(self, default: Configuration, *, may_change: bool) -> None:
        """`may_change`: clients may set properties, some of which name programs and classes."""
        self._all = {DEFAULT: default}
        self._numbers = itertools.count(1)
        self._may_change = may_change

    def __iter__(self) -> itertools.chain[str]:
        return itertools.chain(self._all)

    def get(self, name: str | None) -> Configuration:
        """Returns the configuration of a name, `default` without one. Raises RequestRefused for an
        unknown name.
        """
        found = self._all.get(name or DEFAULT)
        if found is None:
            raise RequestRefused(f"Unknown confId {name}")
        return found

    def as_map(self, name: str) -> dict[str, str]:
        """Returns the properties of a configuration, unexpanded and sorted, with secrets hidden.

        Empty for an unknown name.
        """
        conf = self._all.get(name)
        if conf is None:
            return {}
        return {key: shown(key, conf.raw(key) or "") for key in sorted(conf)}

    def create(self, name: str | None, values: dict[str, str], *, force: bool) -> str:
        """Creates a configuration of `default` and `values`; returns its name. Raises
        RequestRefused.
        """
        self._require_permission()
        chosen = name if name and name.strip() else str(next(self._numbers))
        if chosen in self._all and not force:
            raise RequestRefused("Config already exists.")
        if chosen == DEFAULT or len(self._all) >= MOST:
            raise RequestRefused(
                f"{chosen} can't be created: "
                + ("it is the service's own" if chosen == DEFAULT else "too many")
            )
        self._all[chosen] = _checked(self._all[DEFAULT], values)
        return chosen

    def set(self, name: str, key: str, value: str) -> None:
        """Sets a property. Raises RequestRefused."""
        self._require_permission()
        if name not in self._all:
            raise RequestRefused(f"Unknown configId '{name}'")
        self._all[name] = _checked(self._all[name], {key: value})

    def delete(self, name: str) -> None:
        """Deletes a configuration if it exists. Raises RequestRefused for `default`."""
        if name == DEFAULT:
            raise RequestRefused("default is the service's own configuration")
        self._all.pop(name, None)

    def _require_permission(self) -> None:
        if not self._may_change:
            raise RequestRefused(
                "without authentication (minutch.service.auth=false) no property can be set"
            )


def _checked(base: Configuration, values: dict[str, str]) -> Configuration:
    made = base.with_values(values)
    try:
        check(made)
    except ConfigError as exc:
        raise RequestRefused(str(exc)) from exc
    return made.freeze()


def write(conf: Configuration, path: Path) -> None:
    """Writes the properties that are not from nutch-default.xml to a file for `-conf`, which only
    its owner may read.
    """
    lines = ["<?xml version='1.0' encoding='UTF-8'?>", "<configuration>"]
    for name in conf:
        if Path(conf.source(name) or "").name != DEFAULTS:
            value = escape(conf.raw(name) or "", {"\r": "&#13;"})
            lines.append(f"<property><name>{escape(name)}</name><value>{value}</value></property>")
    lines.append("</configuration>")
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write("\n".join(lines))
