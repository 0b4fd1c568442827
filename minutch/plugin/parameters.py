"""Reads the parameters of index-writers.xml and exchanges.xml: named strings with typed getters.

Source: org.apache.nutch.indexer.IndexWriterParams. An empty value counts as none, but for `get`.
"""

from __future__ import annotations

from collections.abc import Sequence

from minutch.conf import confidential
from minutch.errors import ConfigError


class Parameters(dict[str, str]):
    """The parameters of a writer or exchange; `owner` is its name in error messages."""

    def __init__(self, values: dict[str, str] | None = None, owner: str = "") -> None:
        super().__init__(values or {})
        self.owner = owner

    def get_boolean(self, name: str, default: bool) -> bool:
        """Returns True for "true" in any case, False for anything else."""
        value = self.get(name, "")
        return value.strip().lower() == "true" if value else default

    def get_int(self, name: str, default: int) -> int:
        """Returns a whole number. Raises ConfigError for anything else."""
        value = self.get(name, "").strip()
        try:
            return int(value) if value else default
        except ValueError:
            raise self.wrong(name, "a whole number") from None

    def get_float(self, name: str, default: float) -> float:
        """Returns a number. Raises ConfigError for anything else."""
        value = self.get(name, "").strip()
        try:
            return float(value) if value else default
        except ValueError:
            raise self.wrong(name, "a number") from None

    def get_strings(self, name: str, default: Sequence[str] = ()) -> list[str]:
        """Splits a value at commas; empty pieces are dropped."""
        value = self.get(name, "")
        return [piece for piece in value.split(",") if piece] if value else list(default)

    def wrong(self, name: str, expected: str) -> ConfigError:
        """Makes the error for an invalid value."""
        found = confidential.shown(name, self.get(name, ""))
        return ConfigError(f"{self.owner}: parameter {name}: expected {expected}, found {found!r}")
