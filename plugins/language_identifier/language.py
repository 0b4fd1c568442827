"""language-identifier: detects the language of an HTML page and stores its ISO 639-1 code in the
parse metadata as `language`.

lang.extraction.policy lists how the language is found, in order:

    detect      what the page says: metadata of other filters (dc.language, content-language, lang),
                the first lang attribute, meta dc.language, meta http-equiv content-language, at
                last the Content-Language header
    identify    what the first lang.analyze.max.length characters of title and text look like
                (py3langid, 97 languages); with lang.identification.only.certain only a sure guess
                counts

The index gets it as `lang`; lang.index.languages limits the languages that are indexed.

Source: org.apache.nutch.analysis.lang.HTMLLanguageParser, which identifies by another library, and
LanguageIndexingFilter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from math import sqrt
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.kernels import languages as kernels
from minutch.plugin.documents import Documents, Pages
from minutch.plugin.points import (
    HTMLMetaTags,
    HtmlParseFilter,
    IndexingFilter,
    Parse,
    ParseResult,
)
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.links import Inlinks
from minutch.records.metadata import MadeLater
from minutch.records.protocol import Content

from ..lib_html.tree_reader import ValueFinder

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

# Lists ISO 639-1 codes with their ISO 639-2 codes (terminology and bibliography).
#
# One word of `_TABLE` is a language: the code of two letters, then those of three.

_TABLE = """
aa,aar ab,abk ae,ave af,afr ak,aka am,amh an,arg ar,ara as,asm av,ava ay,aym az,aze ba,bak be,bel
bg,bul bh,bih bi,bis bm,bam bn,ben bo,bod,tib br,bre bs,bos ca,cat ce,che ch,cha co,cos cr,cre
cs,ces,cze cu,chu cv,chv cy,cym,wel da,dan de,deu,ger dv,div dz,dzo ee,ewe el,ell,gre en,eng eo,epo
es,spa et,est eu,eus,baq fa,fas,per ff,ful fi,fin fj,fij fo,fao fr,fra,fre fy,fry ga,gle gd,gla
gl,glg gn,grn gu,guj gv,glv ha,hau he,heb hi,hin ho,hmo hr,hrv,scr ht,hat hu,hun hy,hye,arm hz,her
ia,ina id,ind ie,ile ig,ibo ii,iii ik,ipk io,ido is,isl,ice it,ita iu,iku ja,jpn jv,jav ka,kat,geo
kg,kon ki,kik kj,kua kk,kaz kl,kal km,khm kn,kan ko,kor kr,kau ks,kas ku,kur kv,kom kw,cor ky,kir
la,lat lb,ltz lg,lug li,lim ln,lin lo,lao lt,lit lu,lub lv,lav mg,mlg mh,mah mi,mri,mao mk,mkd,mac
ml,mal mn,mon mr,mar ms,msa,may mt,mlt my,mya,bur na,nau nb,nob nd,nde ne,nep ng,ndo nl,nld,dut
nn,nno no,nor nr,nbl nv,nav ny,nya oc,oci oj,oji om,orm or,ori os,oss pa,pan pi,pli pl,pol ps,pus
pt,por qu,que rm,roh rn,run ro,ron,rum ru,rus rw,kin sa,san sc,srd sd,snd se,sme sg,sag si,sin
sk,slk,slo sl,slv sm,smo sn,sna so,som sq,sqi,alb sr,srp,scc ss,ssw st,sot su,sun sv,swe sw,swa
ta,tam te,tel tg,tgk th,tha ti,tir tk,tuk tl,tgl tn,tsn to,ton tr,tur ts,tso tt,tat tw,twi ty,tah
ug,uig uk,ukr ur,urd uz,uzb ve,ven vi,vie vo,vol wa,wln wo,wol xh,xho yi,yid yo,yor za,zha
zh,zho,chi zu,zul
"""

CODES = {code: group.split(",")[0] for group in _TABLE.split() for code in group.split(",")}
"""Code of two or three letters → code of two."""


LANGUAGE = "language"
CERTAIN = 0.95
"""Minimum probability of a guess that is accepted."""
_MOST_COUNTED = 1 << 16
"""How often a feature counts."""
_TWICE = 0.7
"""The logarithm of 2, and a little more."""
_SEPARATORS = re.compile(r"[, ;.()=]")


class HTMLLanguageParser(HtmlParseFilter):
    """The filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.langs = ValueFinder("", "lang")
        self.metas = ValueFinder("meta", "content", "name", "http-equiv")
        self._length = conf.get_int("lang.analyze.max.length")
        self._only_certain = conf.get_boolean("lang.identification.only.certain")
        ways: dict[str, Callable[[Parse, LexborHTMLParser], str | MadeLater | None]] = {
            "detect": self._detect,
            "identify": self._identify,
        }
        self._ways = [
            ways[name] for name in conf.get_strings("lang.extraction.policy") if name in ways
        ]
        if self._identify in self._ways:
            _identifier()  # unpacks a file, which no parse worker may do later on

    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        parse = result[content.url]
        for way in self._ways:
            if language := way(parse, document):
                values = [language] if isinstance(language, str) else language
                parse.data.parse_meta[LANGUAGE] = values
                break
        return result

    def _detect(self, parse: Parse, document: LexborHTMLParser) -> str | None:
        metadata = parse.data.parse_meta
        named = next(
            filter(None, map(metadata.get, ("dc.language", "content-language", "lang"))), None
        )
        return named or self._stated(document) or parse.data.content_meta.field("Content-Language")

    def _stated(self, document: LexborHTMLParser) -> str | None:
        """Returns what a page states: lang, then dc.language, then content-language."""
        own = None if document.root is None else document.root.attributes.get("lang")
        if own is not None and (language := primary_language(own)):  # as most pages do
            return language
        return next(filter(None, map(primary_language, self._statements(document.root))), None)

    def _statements(self, root: LexborNode | None) -> Iterator[str]:
        yield from (value for (value,) in self.langs.find(root))
        metas = [(value, *map(str.lower, names)) for value, *names in self.metas.find(root)]
        for place, name in ((1, "dc.language"), (2, "content-language")):
            # All elements of one name before those of the next.
            yield from (values[0] for values in metas if values[place] == name)

    def _identify(self, parse: Parse, document: LexborHTMLParser) -> str | MadeLater | None:
        length = self._length
        text = f"{parse.data.title} {parse.text[:length] if length >= 0 else parse.text}"
        text = text[:length] if length != -1 else text
        if not any(map(str.isalpha, text)):
            return None
        if not self._only_certain:
            return MadeLater(_likeliest, text)
        language, probability = _identifier().classify(text)
        return str(language) if probability >= CERTAIN else None


@lru_cache(maxsize=1)
def _identifier() -> Any:
    """py3langid's model, loaded once (half a second). A kernel goes through the text."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    class ByKernel(LanguageIdentifier):  # type: ignore[misc]
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            moves = np.array(self.tk_nextmove, np.int32)
            rows, features = (np.array(table, np.int64) for table in (self.tk_row, self.tk_output))
            states = (rows << 8 << kernels.ROW_AT) | (features + 1)
            self._automaton = kernels.Transitions(moves, states)
            self._counts, self._found = np.zeros((2, len(self.nb_ptc)), np.int32)
            self._weights = np.ascontiguousarray(self.nb_ptc, np.float32)
            self._logarithms = np.log1p(np.arange(_MOST_COUNTED, dtype=np.float32))
            self._lock = Lock()
            self._doubled = {place for pair in self._alias_pairs for place in pair}

        def likeliest(self, text: str) -> Any:
            """The language that `classify` returns."""
            data = self._encode(text)
            # Without the softmax of `classify`, which only a probability needs.
            scores = self._raw_score(data)
            place = int(scores.argmax())
            # Twice as probable as each other one: whatever comes of those that have two places.
            least = scores[place] - _TWICE * sqrt(len(data))
            if place in self._doubled or np.add.reduce(scores >= least) > 1:
                return self.classify(text)[0]
            return self.nb_classes[place]

        def _raw_score(self, text: bytes) -> Any:
            data, path = np.frombuffer(text, np.uint8), np.empty(len(text), np.int32)
            scores = np.zeros(self._weights.shape[1], np.float32)
            with self._lock:
                counts, found = self._counts, self._found
                count = kernels.count_features(data, self._automaton, path, counts, found)
                kernels.sum_features(found, count, counts, self._logarithms, self._weights, scores)
            return scores + self.nb_pc if count else super()._raw_score(text)

    return ByKernel.from_model_file(MODEL_FILE, norm_probs=True)


def _likeliest(texts: list[str]) -> list[str]:
    return [str(_identifier().likeliest(text)) for text in texts]


def primary_language(value: str) -> str | None:
    """Returns the first language that a value names, as ISO 639-1 code: `de-AT, en` is de, `deu`
    too; None if there is none.
    """
    for part in _SEPARATORS.split(value):
        code = CODES.get(re.split("[-_]", part)[0].lower())
        if code is not None:
            return code
    return None


UNKNOWN = "unknown"


class LanguageIndexingFilter(IndexingFilter):
    """Adds the field; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self._wanted = frozenset(conf.get_strings("lang.index.languages"))

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        language = parse.data.parse_meta.get("language")
        if language is None:
            language = parse.data.content_meta.field("Content-Language")
        # LanguageIndexingFilter: an empty one, too.
        language = language or UNKNOWN
        if self._wanted and language not in self._wanted:
            return None
        doc.add("lang", language)
        return doc

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        found = pages.parse_meta("language")
        found = found.zip_with(
            found.is_not_null(), pages.content_meta("Content-Language")
        ).fill_null("")
        languages = found.set(found == "", UNKNOWN)
        if not self._wanted:
            documents.add("lang", languages)
            return None
        stays = languages.is_in(sorted(self._wanted))
        # Documents that go need no field.
        documents.add("lang", languages.set(~stays, None))
        return stays
