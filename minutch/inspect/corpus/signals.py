"""Tells of texts what filters of quality ask: of words, lines and what is repeated, as columns.
Pure: no I/O.

A line is what LF separates, a paragraph what several do, a word what `kernels.quality` says; ratios
by words count signs as words, too, as the tokens of the sources do. Where there is nothing to
divide by, a ratio is null.

Source: J. Rae et al., Scaling Language Models (Gopher, 2021), A1.1; C. Raffel et al., Exploring the
Limits of Transfer Learning (C4, 2020), 2.2; G. Penedo et al., The FineWeb Datasets (2024), 3.6;
datatrove 0.10, whose filters give these their numbers (`quality.toml`).
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Any, Final

import numpy as np
import polars as pl

from minutch.cycle.owntext.near import CHARACTERS, SPACELESS
from minutch.kernels import quality as kernels
from minutch.kernels.arrow import from_series
from minutch.kernels.hash import SEED
from minutch.kernels.native import U8, U64

STOP_WORDS: Final = ("the", "be", "to", "of", "and", "that", "have", "with")
_ENDS: Final = (
    ".!?։؝؞؟۔܀܁܂߹࠷࠹࠽࠾।॥၊။።፧፨᙮᜵᜶។៕៖៙៚᠃᠉᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᭽᭾᰻᰼᱾᱿‼‽⁇⁈⁉⸮⸼⹓⹔。꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱꯫﹒﹖﹗！．？｡"
    "𐩖𐩗𐽕𐽖𐽗𐽘𐽙𐾆𐾇𐾈𐾉𑁇𑁈𑂾𑂿𑃀𑃁𑅁𑅂𑅃𑇅𑇆𑇍𑇞𑇟𑈸𑈹𑈻𑈼𑊩𑑋𑑌𑗂𑗃𑗉𑗊𑗋𑗌𑗍𑗎𑗏𑗐𑗑𑗒𑗓𑗔𑗕𑗖𑗗𑙁𑙂𑜼𑜽𑜾𑥄𑥆𑩂𑩃𑪛𑪜𑱁𑱂𑻷𑻸𑽃𖩮𖩯𖫵𖬷𖬸𖭄𖺘𛲟𝪈"
)
"""What ends a sentence: Unicode's Sentence_Terminal, and signs that mark a verse or a section."""
_MOST_GUESSED: Final = 2000
"""Characters of which a language is guessed: more make it no surer."""
_CITATION: Final = r"\[\d*\]|\[edit\]|\[citation needed\]"
_POLICIES: Final = [
    *("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies"),
    "use cookies",
]
_NEXT_SENTENCE: Final = r"[.!?。！？]['\")\]»”’]*\s+['\"(\[«“‘]*[^\s\p{P}]"


def measures(texts: pl.Series) -> tuple[pl.DataFrame, pl.Series]:
    """Returns the columns of `ABOUT` for texts without blanks at their ends, and the hashes of
    the lines of each, a list, 0 for those that are blank.
    """
    texts = texts.fill_null("")
    counts = np.zeros((len(texts), len(kernels.COUNTS)), np.int64)
    found = from_series(texts)
    ends = np.zeros(len(texts), np.int64)
    hashes = np.zeros(
        int(texts.str.count_matches("\n", literal=True).sum()) + len(texts), np.uint64
    )
    lines = kernels.LineHashes(hashes, ends)
    kernels.measure(found.column, kinds(), _stops(), SEED, room(texts), counts, lines)
    table = pl.DataFrame([pl.Series(name, counts[:, at]) for at, name in enumerate(kernels.COUNTS)])
    own = table.select(**SIGNALS)
    rows = np.repeat(np.arange(len(texts)), np.diff(ends, prepend=0))
    grouped = pl.DataFrame({"row": rows, "line": hashes}).group_by("row", maintain_order=True)
    return pl.DataFrame([*_languages(texts), *own, *_of_c4(texts)]).cast(
        pl.Schema(COLUMNS)
    ), grouped.agg("line")["line"]


def _of(share: str, whole: str) -> pl.Expr:
    """Returns a ratio; null where there is nothing to divide by."""
    return pl.when(pl.col(whole) > 0).then(pl.col(share) / pl.col(whole))


SIGNALS: Final[dict[str, pl.Expr]] = {
    "words": pl.col("words"),
    "mean_word_length": _of("word_chars", "words"),
    "hash_ratio": _of("hashes", "tokens"),
    "ellipsis_ratio": _of("ellipses", "tokens"),
    "bullet_lines": _of("bullet_lines", "lines"),
    "ellipsis_lines": _of("ellipsis_lines", "lines"),
    "alpha_words": _of("alphas", "tokens"),
    "stop_words": pl.col("stops").bitwise_count_ones(),
    "repeated_lines": _of("same_lines", "some_lines"),
    "repeated_line_chars": _of("same_line_chars", "chars"),
    "repeated_paragraphs": _of("same_paragraphs", "paragraphs"),
    "repeated_paragraph_chars": _of("same_paragraph_chars", "chars"),
    **{f"top_{n}_gram": _of(f"top_{n}", "chars") for n in (2, 3, 4)},
    **{f"repeated_{n}_grams": _of(f"same_{n}", "chars") for n in range(5, 11)},
    "ended_lines": _of("ended_lines", "full_lines"),
    "short_lines": _of("short_lines", "full_lines"),
    "repeated_full_line_chars": pl.when(pl.col("chars") > pl.col("newlines")).then(
        pl.col("same_full_chars") / (pl.col("chars") - pl.col("newlines"))
    ),
    "newline_ratio": _of("newlines", "tokens"),
}
"""Column -> how it is made of what kernels count (`kernels.quality.COUNTS`)."""
ABOUT: Final[dict[str, str]] = {
    "text_language": "the language that its text looks like, of 97 (ISO 639-1)",
    "text_language_score": "how probable that is",
    "words": "words",
    "mean_word_length": "their mean length, in characters",
    "hash_ratio": "`#` by words and signs",
    "ellipsis_ratio": "`...` and `…` by words and signs",
    "bullet_lines": "share of lines that begin with `•` or `-`",
    "ellipsis_lines": "share of lines that end with `...` or `…`",
    "alpha_words": "share of words and signs that have a letter",
    "stop_words": f"how many of {', '.join(STOP_WORDS)} occur",
    "repeated_lines": "share of lines that came before on the page",
    "repeated_line_chars": "share of characters in such lines",
    "repeated_paragraphs": "share of paragraphs that came before on the page",
    "repeated_paragraph_chars": "share of characters in such paragraphs",
    **{f"top_{n}_gram": f"share of characters in the most frequent {n} words" for n in (2, 3, 4)},
    **{
        f"repeated_{n}_grams": f"share of characters in {n} words that came before on the page"
        for n in range(5, 11)
    },
    "ended_lines": "share of lines that end with a terminal punctuation mark",
    "short_lines": "share of lines of 30 characters at most",
    "repeated_full_line_chars": "as repeated_line_chars, line breaks and blank lines not counted",
    "newline_ratio": "line breaks by words and signs",
    "c4_lines": "share of lines that C4 keeps",
    "c4_sentences": "sentences in these",
    "lorem_ipsum": "whether `lorem ipsum` is in one that C4 looks at",
    "curly_bracket": "whether `{` is in one that C4 looks at",
}
"""The columns of what is asked of a text, and what they are."""


COLUMNS: Final = {
    **{
        name: pl.Int64() if name in ("words", "stop_words", "c4_sentences") else pl.Float64()
        for name in ABOUT
    },
    "text_language": pl.String(),
    "lorem_ipsum": pl.Boolean(),
    "curly_bracket": pl.Boolean(),
}


def _languages(texts: pl.Series) -> pl.DataFrame:
    """Returns the languages of texts that have letters, with their probabilities (py3langid)."""
    schema = pl.Schema({"text_language": pl.String(), "text_language_score": pl.Float64()})
    starts = texts.str.head(_MOST_GUESSED)
    # Of digits and signs a model guesses some language, too.
    has_letters = starts.str.contains(r"\p{L}")
    found = [
        _identifier().classify(start) if is_text else (None, None)
        for start, is_text in zip(starts, has_letters, strict=True)
    ]
    return pl.DataFrame(found, schema, orient="row")


@cache
def _identifier() -> Any:
    """Loads the model of py3langid (half a second)."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _of_c4(texts: pl.Series) -> pl.DataFrame:
    """Returns what C4's filter asks: sentences in lines that it keeps, the share of these lines,
    and whether those that it looks at have "lorem ipsum" or a curly bracket.
    """
    line = pl.col("line")
    cleaned = line.str.replace_all(_CITATION, "")
    low = cleaned.str.to_lowercase()
    # C4's own list of ends, of ASCII alone.
    is_ended = cleaned.str.contains(r"""[.?!"']$""") & ~cleaned.str.ends_with("...")
    is_looked_at = (
        ~line.str.contains(r"\S{1001}") & is_ended & line.str.contains(r"\S\s+\S+\s+\S")
    ).alias("is_looked_at")
    is_kept = pl.col("is_looked_at") & ~pl.any_horizontal(
        low.str.contains("javascript", literal=True), low.str.contains_any(_POLICIES)
    )
    lines = (
        texts.alias("line")
        .to_frame()
        .with_row_index("row")
        .with_columns(pl.col("line").str.split("\n"))
        .explode("line")
        .with_columns(line.str.strip_chars())
        .with_columns(is_looked_at)
        .with_columns(is_kept=is_kept, cleaned=cleaned, low=low)
    )
    return (
        lines.group_by("row", maintain_order=True)
        .agg(
            c4_lines=pl.col("is_kept").mean(),
            c4_sentences=(pl.col("cleaned").str.count_matches(_NEXT_SENTENCE) + 1)
            .filter(pl.col("is_kept"))
            .sum()
            .cast(pl.Int64),
            lorem_ipsum=(
                pl.col("is_looked_at") & pl.col("low").str.contains("lorem ipsum", literal=True)
            ).any(),
            curly_bracket=(
                pl.col("is_looked_at") & pl.col("cleaned").str.contains("{", literal=True)
            ).any(),
        )
        .drop("row")
    )


def room(texts: pl.Series) -> kernels.WordRoom:
    """Makes room for the longest of the texts."""
    # A text has no more words than bytes.
    longest = int(texts.str.len_bytes().max() or 0) + 1  # type: ignore[arg-type]
    slots = 4 << longest.bit_length()
    return kernels.WordRoom(
        np.empty(longest, np.uint64),
        np.empty(longest, np.int32),
        np.empty(longest, np.uint8),
        np.empty(slots, np.uint64),
        np.empty(slots, np.int32),
    )


@cache
def kinds() -> U8:
    """Makes the table of what characters are."""
    table = np.zeros(CHARACTERS, np.uint8)
    for code in range(CHARACTERS):
        char = chr(code)
        category = unicodedata.category(char)
        if char.isspace() or category[0] == "Z":
            table[code] = kernels.SPACE
        elif category[0] == "P" or category == "Cc" or char in "$+<=>^`|~":
            table[code] = kernels.SIGN
        elif category[0] == "S":
            table[code] = kernels.ALONE
        elif char.isalpha():
            table[code] = kernels.ALPHA
        elif category == "Nd":
            table[code] = kernels.DIGIT
    for first, last in SPACELESS:
        spaceless = table[first : last + 1]
        spaceless[spaceless & (kernels.SPACE | kernels.SIGN) == 0] |= kernels.ALONE
    for char in _ENDS:
        table[ord(char)] = kernels.SIGN | kernels.END
    return table


@cache
def _stops() -> U64:
    texts = pl.Series(STOP_WORDS)
    hashes = np.zeros(len(texts), np.uint64)
    kernels.hash_words(from_series(texts).column, kinds(), room(texts), hashes)
    return hashes
