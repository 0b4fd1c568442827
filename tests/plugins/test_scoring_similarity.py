"""scoring-similarity: likeness to a gold standard as the score of a page and of its links."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.plugin.points import Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import SCORE_KEY, Metadata
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content
from plugins.scoring_similarity.similarity import SimilarityScoringFilter, shingles, terms, words

STANDARD = "Crawlers crawl the web.\nA crawler obeys robots"


def scoring(folder: Path, standard: str = STANDARD, **values: str) -> SimilarityScoringFilter:
    """The filter, with the gold standard in a folder of its own."""
    (folder / "goldstandard.txt").write_text(standard, encoding="utf-8")
    named = {
        f"scoring.similarity.{name.replace('_', '.')}": value for name, value in values.items()
    }
    return SimilarityScoringFilter(Configuration.load([folder], overrides=named), {})


def test_words() -> None:
    text = "Hello, world's 3.14 e.g. 日本 x-y, ÉTÉ \U0001f600 " + "z" * 256
    assert words(text) == [
        "hello",
        "world's",
        "3.14",
        "e.g",
        "日",
        "本",
        "x",
        "y",
        "été",
        "z" * 255,
        "z",
    ]


def test_terms_are_stems_without_stopwords() -> None:
    assert terms("The crawlers crawl; crawling is of us", ["us"]) == {"crawler": 1, "crawl": 2}
    assert terms("as us") == {"us": 1}


def test_shingles_keep_stopwords() -> None:
    assert shingles("crawls the web", 2, 3) == {"crawl the": 1, "the web": 1, "crawl the web": 1}
    assert shingles("one", 2, 3) == {}


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (STANDARD, 1.0),
        ("nothing of that", 0.0),
        ("", 0.0),
        ("the of and", 0.0),
        ("crawler", 2 / 8**0.5),  # crawler twice; crawl, web, obei and robot once
    ],
)
def test_cosine(tmp_path: Path, text: str, score: float) -> None:
    assert scoring(tmp_path).score(text) == pytest.approx(score, rel=1e-6)


def test_runs_of_words(tmp_path: Path) -> None:
    by_pairs = scoring(tmp_path, "big red car", ngrams="2")
    assert by_pairs.score("big red bus") == pytest.approx(0.5)
    assert by_pairs.score("red big car") == 0.0
    assert scoring(tmp_path, "big red car", ngrams="2,3").score("big red car") == pytest.approx(1.0)
    assert scoring(tmp_path, "big red car", ngrams="1,3").score("car red big") == pytest.approx(1.0)


def test_stopwords_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("# none\nCrawler\n", encoding="utf-8")
    assert scoring(tmp_path, stopword_file="mine.txt").score("crawler") == 0.0
    assert scoring(tmp_path).score("crawler") > 0.5


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"model": "euclid"}, "scoring.similarity.model: expected cosine, found 'euclid'"),
        ({"ngrams": "a"}, "scoring.similarity.ngrams: expected one or two numbers"),
        ({"ngrams": "1,99"}, "scoring.similarity.ngrams: expected one or two numbers"),
        ({"stopword_file": "no.txt"}, "no.txt"),
    ],
)
def test_wrong_settings(tmp_path: Path, values: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        scoring(tmp_path, **values)


def test_no_gold_standard(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cosine\.goldstandard\.file: .*own\.txt"):
        SimilarityScoringFilter(
            Configuration.load([tmp_path], overrides={"cosine.goldstandard.file": "own.txt"}), {}
        )
    with pytest.raises(ConfigError, match="no words to compare"):
        scoring(tmp_path, "the of")


def test_page_and_links(tmp_path: Path) -> None:
    chosen = scoring(tmp_path)
    content = Content(
        url="http://a/", base="http://a/", content=b"", content_type="", metadata=Metadata()
    )
    parse = Parse("crawlers crawl", ParseData())
    parse.data.parse_meta.set("metatag.description", "obeys robots: web crawler")
    chosen.pass_score_after_parsing("http://a/", content, parse)
    score = float(parse.data.content_meta.get(SCORE_KEY) or "")
    assert score == pytest.approx(1.0)
    targets = [("http://b/", CrawlDatum()), ("http://c/", CrawlDatum())]
    assert chosen.distribute_score_to_outlinks("http://a/", parse.data, targets, None, 2) is None
    assert [datum.score for _, datum in targets] == [score, score]
    assert chosen.outlink_score(parse.data, 2, 2, 0.0) == score


@pytest.mark.parametrize("text", [None, "much"])
def test_no_score(tmp_path: Path, text: str | None) -> None:
    data, target = ParseData(), CrawlDatum(score=0.5)
    if text is not None:
        data.content_meta.set(SCORE_KEY, text)
    scoring(tmp_path).distribute_score_to_outlinks(
        "http://a/", data, [("http://b/", target)], None, 1
    )
    assert target.score == 0.5
    assert scoring(tmp_path).outlink_score(data, 1, 1, 0.25) == 0.25
