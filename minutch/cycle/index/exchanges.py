"""Decides which index writers a document goes to, by conf/exchanges.xml.

A document goes to the writers of all exchanges that it matches, or else to those of the exchange
with class="default". If no exchange is active, it goes to all writers; if it matches none and there
is no default, it goes to no writer and is counted.

Source: org.apache.nutch.exchange.Exchanges, ExchangeConfig.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import polars as pl

from minutch.conf import Configuration
from minutch.plugin.documents import Documents
from minutch.plugin.parameters import Parameters, parameters_of, read_elements
from minutch.plugin.points import Exchange
from minutch.plugin.repository import PluginRepository

log = logging.getLogger(__name__)

FILE_PROPERTY: Final = "exchanges.exchanges.file"
FILE: Final = "exchanges.xml"
DEFAULT: Final = "default"


class ExchangeRoute(NamedTuple):
    """An exchange, and the ids of the writers that its documents go to."""

    exchange: Exchange
    writers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Exchanges:
    """The exchanges that are configured and active, and the writers of unmatched documents."""

    routes: Sequence[ExchangeRoute] = ()
    default: frozenset[str] | None = None

    @classmethod
    def from_conf(cls, conf: Configuration) -> Self:
        """Reads the file; without it there are no exchanges. Raises ConfigError."""
        routes: list[ExchangeRoute] = []
        default: frozenset[str] | None = None
        name = conf.get_text(FILE_PROPERTY)
        if conf.resource(name) is None:
            return cls()
        extensions = {
            e.implementation.class_name: e
            for e in PluginRepository.of(conf).extensions(Exchange.point_id)
        }
        for element in read_elements(conf, name).iter("exchange"):
            writers = frozenset(writer.get("id", "") for writer in element.iter("writer"))
            wanted = element.get("class", "")
            if wanted == DEFAULT:
                default = writers
            elif wanted in extensions:
                extension = extensions[wanted].make()
                assert isinstance(extension, Exchange)
                extension.open(
                    Parameters(parameters_of(element), f"{name}, exchange {element.get('id')}")
                )
                routes.append(ExchangeRoute(extension, writers))
        return cls(routes, default)

    @property
    def are_active(self) -> bool:
        """True if documents may go to different writers."""
        return bool(self.routes) or self.default is not None

    def names(self) -> frozenset[str]:
        """Returns the ids of all writers that documents may go to."""
        return frozenset().union(*(route.writers for route in self.routes), self.default or ())

    def masks(self, documents: Documents, writers: list[str]) -> dict[str, pl.Series]:
        """Returns for each writer which of the documents go to it."""
        everything = pl.Series([True]).new_from_index(0, len(documents))
        if not self.are_active:
            return dict.fromkeys(writers, everything)
        masks = dict.fromkeys(writers, ~everything)
        named = ~everything
        for route in self.routes:
            matched = route.exchange.match_columns(documents)
            for writer in route.writers & masks.keys():
                masks[writer] = masks[writer] | matched
            if route.writers:
                named = named | matched
        for writer in (self.default or frozenset()) & masks.keys():
            masks[writer] = masks[writer] | ~named
        return masks
