"""Copies, renames and removes the fields of documents for a writer, by its mapping in
index-writers.xml. Pure.

    <copy>      <field source="title" dest="title,search"/>     adds the values under other names
    <rename>    <field source="host" dest="site"/>              moves the values to the new name
    <remove>    <field source="segment"/>

They apply in this order; fields of one kind in the order of Java's HashMap, which matters if two
are copied to one. If a field is renamed to an existing one, its values are added (Nutch adds them
as one value that no writer can write).

Source: org.apache.nutch.indexer.MappingReader, IndexWriters.mapDocument.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from minutch.hadoop.formats.javahash import names_order
from minutch.plugin.documents import Documents


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
