"""Decides which index writers a document goes to, by conf/exchanges.xml, and under which names its
fields, by the writer's mapping in index-writers.xml.

A document goes to the writers of all exchanges that it matches, or else to those of the exchange
with class="default". If no exchange is active, it goes to all writers; if it matches none and there
is no default, it goes to no writer and is counted.

    <copy>      <field source="title" dest="title,search"/>     adds the values under other names
    <rename>    <field source="host" dest="site"/>              moves the values to the new name
    <remove>    <field source="segment"/>

They apply in this order; fields of one kind in the order of Java's HashMap, which matters if two
are copied to one. If a field is renamed to an existing one, its values are added (Nutch adds them
as one value that no writer can write).

Source: org.apache.nutch.exchange.Exchanges, ExchangeConfig, org.apache.nutch.indexer.MappingReader,
IndexWriters.mapDocument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self
from xml.etree.ElementTree import Element

import polars as pl

from minutch.conf import Configuration
from minutch.hadoop.formats.javahash import names_order
from minutch.plugin.documents import Documents
from minutch.plugin.parameters import Parameters, parameters_of, read_elements
from minutch.plugin.points import Exchange
from minutch.plugin.repository import PluginRepository

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


@dataclass(frozen=True)
class FieldMapping:
    """The changes to the fields of a writer's documents."""

    copies: dict[str, list[str]] = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    removes: tuple[str, ...] = ()

    @classmethod
    def of(cls, writer: Element) -> FieldMapping:
        """Reads the mapping of a `<writer>`; without one, documents are not changed."""
        mapping = next(writer.iter("mapping"), None)
        if mapping is None:
            return cls()
        return cls(
            {
                name: [dest.strip() for dest in dests.split(",")]
                for name, dests in _fields(mapping, "copy").items()
            },
            _fields(mapping, "rename"),
            tuple(_fields(mapping, "remove")),
        )

    def apply(self, documents: Documents) -> Documents:
        """Returns the documents for the writer; `documents` are not changed."""
        if not (self.copies or self.renames or self.removes):
            return documents
        mapped = documents.copy()
        for source, names in self.copies.items():
            for name in names:
                values = mapped.column(source)
                if values is not None and name and name != source:
                    mapped.add(name, values)
        for source, name in self.renames.items():
            values = mapped.remove(source)
            if values is not None:
                mapped.add(name, values)
        for source in self.removes:
            mapped.remove(source)
        return mapped


def _fields(mapping: Element, kind: str) -> dict[str, str]:
    """Reads source and destination of the `<field>` elements of a kind."""
    block = next(mapping.iter(kind), None)
    found = [] if block is None else block.iter("field")
    fields = {item.get("source", ""): item.get("dest", "") for item in found}
    names = list(fields)
    return {names[i]: fields[names[i]] for i in names_order(tuple(names))}
