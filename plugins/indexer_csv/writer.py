"""indexer-csv: documents as lines of a CSV file, byte for byte as Nutch writes it.

    fields           columns, in order (id,title,content)
    charset          encoding of the file (UTF-8); what it lacks becomes a question mark
    separator        between columns (,)
    valuesep         between several values of a field (|)
    quotechar        around values that hold a quote, or a character of a separator (")
    escapechar       before a quote in a quoted value ("); it is the quote, too, whatever quotechar says
    maxfieldlength   UTF-16 units that are kept of each value (4096)
    maxfieldvalues   has no effect beyond telling one value from several (12): all values are written
    header           whether the first line has the names of the columns (true); if not, it is empty
    outpath          folder of the file nutch.csv (csvindexwriter)

Fields with several values are always quoted. Lines end in CR LF. Documents can't be deleted. The file appears whole
when the job has ended. Unlike Nutch, which fails at them, numbers and truth values are written as text.

Source: org.apache.nutch.indexwriter.csv.CSVIndexWriter, CSVConstants.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from minutch.errors import IndexWriterError
from minutch.plugin.documents import Documents, cut_texts, texts_of
from minutch.plugin.parameters import Parameters
from minutch.plugin.points import Action, IndexWriter, Refused
from minutch.records.document import NutchDocument
from minutch.tables.wholefile import WholeFile

END = "\r\n"
FILE = "nutch.csv"


class CSVIndexWriter(IndexWriter):
    """Writes one file."""

    def configure(self, parameters: Parameters) -> None:
        self.fields = parameters.get_strings("fields", ("id", "title", "content"))
        self.separator = parameters.get("separator", ",")
        self.value_separator = parameters.get("valuesep", "|")
        self.quote = parameters.get("escapechar", parameters.get("quotechar", '"'))[:1]
        self.max_length = parameters.get_int("maxfieldlength", 4096)
        self.max_values = parameters.get_int("maxfieldvalues", 12)
        self.header = parameters.get_boolean("header", True)
        self.folder = Path(parameters.get("outpath", "csvindexwriter"))
        self.charset = parameters.get("charset", "UTF-8")
        try:
            self.codec = codecs.lookup(self.charset).name
        except LookupError:
            raise parameters.wrong("charset", "the name of a charset") from None
        self._special = list(dict.fromkeys([self.quote, *self.separator, *END]))

    # -- lines -------------------------------------------------------------------------------------------------------

    def encode(self, doc: NutchDocument) -> bytes:
        documents = Documents(pl.Series([""]))
        documents.replace([doc])
        return bytes(self.encode_columns(documents)[0])

    def encode_columns(self, documents: Documents) -> pl.Series:
        """The line of each document."""
        columns = [self._column(documents, name) for name in self.fields]
        line = pl.concat_str([pl.lit(c) for c in columns], separator=self.separator) if columns else pl.lit("")
        lines = pl.select(line + pl.lit(END)).to_series()
        if len(lines) < len(documents):  # no column at all
            lines = lines.new_from_index(0, len(documents))
        if self.codec == "utf-8":
            return lines.cast(pl.Binary)
        return pl.Series([text.encode(self.codec, "replace") for text in lines], dtype=pl.Binary)

    def _column(self, documents: Documents, name: str) -> pl.Series:
        """A column of the file."""
        values = documents.column(name)
        if values is None:
            return pl.Series([""]).new_from_index(0, len(documents))
        texts = texts_of(values)
        if not isinstance(texts.dtype, pl.List):
            return self._quoted(texts).fill_null("")
        lengths = texts.list.len().fill_null(0)
        owner = pl.Series(range(len(texts))).filter(lengths > 0)
        flat = texts.filter(lengths > 0).explode()
        several = pl.select(pl.min_horizontal(lengths, pl.lit(self.max_values)) > 1).to_series()
        rows = pl.DataFrame({"row": owner, "n": lengths.filter(lengths > 0)}).select(pl.col("row").repeat_by("n"))
        table = pl.DataFrame({"row": rows["row"].explode(), "plain": flat}).with_columns(
            self._quoted(flat).alias("quoted"), self._escaped(cut_texts(flat, self.max_length)).alias("escaped")
        )
        joined = table.group_by("row", maintain_order=True).agg(
            pl.col("quoted").str.join("").alias("quoted"),
            pl.col("escaped").str.join(self.value_separator).alias("escaped"),
        )
        every = pl.DataFrame({"row": range(len(texts)), "several": several})
        found = every.join(joined, on="row", how="left", maintain_order="left")
        return found.select(
            pl.when("several")
            .then(pl.lit(self.quote) + pl.col("escaped") + pl.lit(self.quote))
            .otherwise("quoted")
            .fill_null("")
            .alias(name)
        ).to_series()

    def _quoted(self, texts: pl.Series) -> pl.Series:
        """Texts that stand alone: quoted if they have to be, and cut."""
        cut = cut_texts(texts, self.max_length)
        if not self.quote:
            return cut
        special = texts.str.contains_any(self._special)
        if not special.any():
            return cut
        rows = special.fill_null(False).arg_true()
        quoted = self.quote + self._escaped(cut.gather(rows)) + self.quote
        return cut.clone().scatter(rows, quoted)

    def _escaped(self, texts: pl.Series) -> pl.Series:
        """Quotes in texts twice."""
        return texts.str.replace_all(self.quote, self.quote * 2, literal=True) if self.quote else texts

    # -- the file ----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        try:
            self._file = WholeFile(self.folder / FILE, sums=True)
            names = self.separator.join(self.fields) if self.header else ""
            self._file.write((names + END).encode(self.codec, "replace"))
        except OSError as exc:
            raise IndexWriterError(f"{self.folder / FILE}: can't be written: {exc.strerror}") from exc

    def write(self, actions: Sequence[Action]) -> Sequence[Refused]:
        try:
            self._file.write(b"".join(action.payload for action in actions if action.payload is not None))
        except OSError as exc:
            raise IndexWriterError(f"{self._file.path}: can't be written: {exc.strerror}") from exc
        return ()

    def close(self) -> None:
        self._file.close()

    def abort(self) -> None:
        if hasattr(self, "_file"):
            self._file.discard()

    def describe(self) -> dict[str, tuple[str, object]]:
        return {
            "fields": ("columns of the file, in order", ",".join(self.fields)),
            "separator": ("between columns", repr(self.separator)),
            "quotechar": ("around values that need it", repr(self.quote)),
            "valuesep": ("between several values of a field", repr(self.value_separator)),
            "maxfieldvalues": ("more values than these are a list", self.max_values),
            "maxfieldlength": ("characters of a value that are kept", self.max_length),
            "charset": ("encoding of the file", self.charset),
            "header": ("whether the first line names the columns", str(self.header).lower()),
            "outpath": ("folder of nutch.csv", self.folder),
        }
