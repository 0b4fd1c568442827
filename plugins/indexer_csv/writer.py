"""indexer-csv: writes documents as lines of a CSV file, byte for byte as Nutch does.

    fields           columns, in order (id,title,content)
    charset          encoding of the file (UTF-8); what it lacks becomes a question mark
    separator        between columns (,)
    valuesep         between several values of a field (|)
    quotechar        around values that hold a quote, or a character of a separator (")
    escapechar       before a quote in a quoted value ("); it is the quote, too, whatever quotechar
                     says
    maxfieldlength   UTF-16 units that are kept of each value (4096)
    maxfieldvalues   has no effect beyond telling one value from several (12): all values are
                     written
    header           whether the first line has the names of the columns (true); if not, it is empty
    outpath          folder of the file nutch.csv (csvindexwriter)

Fields with several values are always quoted. Lines end in CR LF. Documents can't be deleted. The
file appears whole when the job has ended. Unlike Nutch, which fails at them, numbers and truth
values are written as text.

Source: org.apache.nutch.indexwriter.csv.CSVIndexWriter, CSVConstants.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from minutch.errors import IndexWriterError
from minutch.plugin.documents import Documents, cut_texts, texts_of
from minutch.plugin.parameters import Parameters
from minutch.plugin.points import Action, IndexWriter, Refused
from minutch.records.document import NutchDocument
from minutch.work.tables.install import WholeFile

END = "\r\n"
FILE = "nutch.csv"


class CSVIndexWriter(IndexWriter):
    """Writes one file."""

    overwrites = True

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

    # -- lines -------------------------------------------------------------------------------------

    def encode(self, doc: NutchDocument) -> bytes:
        return bytes(self.encode_columns(Documents.of(doc))[0])

    def encode_columns(self, documents: Documents) -> pl.Series:
        """Returns the line of each document."""
        columns = [self._column(documents, name) for name in self.fields]
        pieces = [piece for column in columns for piece in (pl.lit(self.separator), pl.lit(column))]
        lines = pl.select(pl.concat_str([*pieces[1:], pl.lit(END)])).to_series()
        if len(lines) < len(documents):  # no column at all
            lines = lines.new_from_index(0, len(documents))
        if self.codec == "utf-8":
            return lines.cast(pl.Binary)
        return pl.Series([text.encode(self.codec, "replace") for text in lines], dtype=pl.Binary)

    def _column(self, documents: Documents, name: str) -> pl.Series:
        """Returns a column of the file."""
        values = documents.column(name)
        if values is None:
            return pl.Series([""]).new_from_index(0, len(documents))
        texts = texts_of(values)
        if not isinstance(texts.dtype, pl.List):
            return self._quoted(texts).fill_null("")
        count = texts.list.len().fill_null(0)
        several = count.clip(upper_bound=self.max_values) > 1
        joined = texts.list.join(self.value_separator, ignore_nulls=True).fill_null("")
        careful = (joined.str.len_bytes() > self.max_length) | (several != (count > 1))
        if self.quote:
            careful = careful | joined.str.contains(self.quote, literal=True)
        rows = careful.arg_true()
        quoted = self._quoted(joined) if not several.all() else joined
        lines = self._in_quotes(joined).zip_with(several, quoted)
        return (
            lines.scatter(rows, self._lists(texts.gather(rows), several.gather(rows)))
            if len(rows)
            else lines
        )

    def _lists(self, texts: pl.Series, several: pl.Series) -> pl.Series:
        """Lists of texts, each cut and escaped by itself."""
        rows = texts.list.len().to_numpy()
        flat = texts.explode(empty_as_null=False)
        table = pl.DataFrame(
            {
                "row": np.repeat(np.arange(len(texts)), rows),
                "quoted": self._quoted(flat),
                "escaped": self._escaped(cut_texts(flat, self.max_length)),
            }
        )
        separator = self.value_separator
        joined = table.group_by("row", maintain_order=True).agg(
            pl.col("quoted").str.join(""), pl.col("escaped").str.join(separator)
        )
        return self._in_quotes(joined["escaped"]).zip_with(several, joined["quoted"])

    def _quoted(self, texts: pl.Series) -> pl.Series:
        """Texts that stand alone: quoted if they have to be, and cut."""
        cut = cut_texts(texts, self.max_length)
        if not self.quote:
            return cut
        column = pl.col(texts.name)
        found = [
            column.str.contains(character, literal=True) for character in self._special
        ]  # faster than any of them
        special = texts.to_frame().select(pl.any_horizontal(found)).to_series()
        if not special.any():
            return cut
        rows = special.fill_null(False).arg_true()
        return cut.clone().scatter(rows, self._in_quotes(self._escaped(cut.gather(rows))))

    def _in_quotes(self, texts: pl.Series) -> pl.Series:
        return pl.select(pl.concat_str([pl.lit(self.quote), texts, pl.lit(self.quote)])).to_series()

    def _escaped(self, texts: pl.Series) -> pl.Series:
        """Quotes in texts twice."""
        return (
            texts.str.replace_all(self.quote, self.quote * 2, literal=True) if self.quote else texts
        )

    # -- the file ----------------------------------------------------------------------------------

    def open(self) -> None:
        try:
            self._file = WholeFile(self.folder / FILE, sums=True)
            names = self.separator.join(self.fields) if self.header else ""
            self._file.write((names + END).encode(self.codec, "replace"))
        except OSError as exc:
            raise IndexWriterError(
                f"{self.folder / FILE}: can't be written: {exc.strerror}"
            ) from exc

    def write(self, actions: Sequence[Action]) -> Sequence[Refused]:
        try:
            self._file.write(
                b"".join(action.payload for action in actions if action.payload is not None)
            )
        except OSError as exc:
            raise IndexWriterError(f"{self._file.path}: can't be written: {exc.strerror}") from exc
        return ()

    def close(self) -> None:
        self._file.close()

    def abort(self) -> None:
        if hasattr(self, "_file"):  # `open` may have failed
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
