"""Defines the fields of the local index, and how their texts become words.

    key                                  the URL that a document is stored and deleted under
    id host site domain lang type tld digest segment
                                         found as they are, in lower case (id: as it is)
    tstamp date lastModified             points in time
    url anchor title content                             words, in lower case, without accents
    title_en content_en …                                the same of documents whose `lang` has a
                                                         stemmer, in its place
    frame                                                words of what belongs to the site, not
                                                         stored, not stemmed
    binaryContent                                        stored only
    other                                                all other fields, under their names; words
                                                         and numbers

Chinese, Japanese and Korean text is searched by pairs of characters. It is stored with each inner
character of a run twice and a mark between (`paired`), so that the same plain tokenizer serves
every language; `unpaired` takes it back.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import tantivy

KEY: Final = "key"
OTHER: Final = "other"
BINARY: Final = "binaryContent"
EXACT: Final = ("host", "site", "domain", "lang", "type", "tld", "digest", "segment")
DATES: Final = ("tstamp", "date", "lastModified")
TEXTS: Final = ("url", "anchor", "title", "content")
"""Fields of words. Each has a twin for each language with a stemmer."""
HAS: Final = "has"
FRAME: Final = "frame"
STEMMERS: Final = {
    "ar": "arabic",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
"""Language (ISO 639-1) → Snowball's stemmer."""
_MORE_STOP_WORDS: Final = {
    "en": """about after all also am any been before between can cannot could did do does doing
        during each from get had has have having he her here him his how i its just many may me
        might more most much must my myself need only other our ours own s same shall she should so
        some t than them those too us using very via want was we were what when where whether which
        while who whom whose why without would you your yours"""
}
"""tantivy's list for English has 33 words, without questions; others are Snowball's hundreds."""
_WITHOUT_STOP_WORDS: Final = frozenset(("ar", "el", "ro", "ta", "tr"))
"""Languages for which tantivy has no list."""
KNOWN: Final = frozenset((KEY, "id", BINARY, HAS, FRAME, *EXACT, *DATES, *TEXTS))
"""Names that have a field of their own."""

LONGEST_WORD: Final = 100
"""Bytes; longer ones are not searched."""
LONGEST_EXACT: Final = 8000

_CJK: Final = (
    "[\u3040-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003134f]"
)
"""Kana, Bopomofo, Han, Hangul."""
_PAIR: Final = "\u2060"
_EDGE: Final = "\u200b"
HAS_CJK: Final = _CJK
"""A pattern of texts that `paired` changes."""
HAS_MARK: Final = f"[{_PAIR}{_EDGE}]"
_INNER: Final = re.compile(f"(?<={_CJK})({_CJK})(?={_CJK})")
_BORDER: Final = re.compile(f"(?<={_CJK})(?=(?!{_CJK})\\w)|(?<=\\w)(?<!{_CJK})(?={_CJK})")
_MARKS: Final = re.compile(f"{_PAIR}.|{_EDGE}", re.DOTALL)
_FOREIGN: Final = re.compile(HAS_MARK)


def paired(text: str) -> str:
    """Turns runs of Chinese, Japanese and Korean characters into overlapping pairs."""
    return _INNER.sub(rf"\1{_PAIR}\1", _BORDER.sub(_EDGE, _FOREIGN.sub("", text)))


def unpaired(text: str) -> str:
    """Returns the text that `paired` was given."""
    return _MARKS.sub("", text)


def stemmer_of(lang: str | None) -> str | None:
    """Returns the key of STEMMERS for a document's language (`en`, `en-GB`, `EN_us`), or None."""
    code = re.split("[-_]", lang or "", maxsplit=1)[0].lower()
    code = "no" if code in ("nb", "nn") else code
    return code if code in STEMMERS else None


def twins(names: Iterable[str], languages: Collection[str]) -> list[str]:
    """Returns fields of words, and their twins of these languages."""
    return [one for name in names for one in (name, *(f"{name}_{code}" for code in languages))]


def schema() -> tantivy.Schema:
    """Returns the fields as tantivy's schema."""
    builder = tantivy.SchemaBuilder()
    for name in (KEY, "id"):
        builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    for name in EXACT:
        builder.add_text_field(
            name, stored=True, fast=name == "host", tokenizer_name="exact", index_option="basic"
        )
    for name in DATES:
        builder.add_date_field(name, stored=True, indexed=True, fast=True)
    for name in twins(TEXTS, STEMMERS):
        builder.add_text_field(name, stored=True, tokenizer_name=_tokenizer(name))
    builder.add_text_field(HAS, tokenizer_name="exact", index_option="basic")
    builder.add_text_field(FRAME, tokenizer_name="words")
    builder.add_bytes_field(BINARY, stored=True)
    builder.add_json_field(OTHER, stored=True, tokenizer_name="words", expand_dots_enabled=True)
    return builder.build()


def register(index: tantivy.Index) -> None:
    """Registers the tokenizers with an index."""
    exact = _analyzer(tantivy.Tokenizer.raw(), LONGEST_EXACT).build()
    index.register_tokenizer("exact", exact)
    index.register_fast_field_tokenizer("exact", exact)
    for name in twins(("",), STEMMERS):
        index.register_tokenizer(_tokenizer(name), words_of(name))


def words_of(field: str) -> tantivy.TextAnalyzer:
    """Returns what makes words of a field's text."""
    lowered = _analyzer(tantivy.Tokenizer.simple(), LONGEST_WORD)
    stemmer = STEMMERS.get(field.partition("_")[2])
    stemmed = lowered.filter(tantivy.Filter.stemmer(stemmer)) if stemmer else lowered
    return stemmed.filter(tantivy.Filter.ascii_fold()).build()


def stop_words(words: Sequence[str], shares: Mapping[str, float]) -> Collection[str]:
    """Returns those words of a query that are stop words of its language; none if all are.

    The language is that of the most stop words; of several, the one with the largest share of the
    documents.
    """
    found: dict[str, list[str]] = {}
    for code in (code for code in shares if code not in _WITHOUT_STOP_WORDS):
        listed = tantivy.Filter.stopword(STEMMERS[code])
        own = tantivy.Filter.custom_stopword(_MORE_STOP_WORDS.get(code, "").split())
        simple = _analyzer(tantivy.Tokenizer.simple(), LONGEST_WORD)
        analyzer = simple.filter(listed).filter(own).build()
        found[code] = [word for word in words if not analyzer.analyze(word)]
    most = max(found.items(), key=lambda pair: (len(pair[1]), shares[pair[0]]), default=("", []))[1]
    return most if len(most) < len(words) else ()


def _tokenizer(field: str) -> str:
    return f"words{field[field.find('_') :]}" if "_" in field else "words"


def _analyzer(tokenizer: tantivy.Tokenizer, longest: int) -> tantivy.TextAnalyzerBuilder:
    shortened = tantivy.TextAnalyzerBuilder(tokenizer).filter(tantivy.Filter.remove_long(longest))
    return shortened.filter(tantivy.Filter.lowercase())
