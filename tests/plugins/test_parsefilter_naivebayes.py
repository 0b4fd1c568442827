"""parsefilter-naivebayes: which pages are on the subject, and which links the others keep."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

import pytest

from minutch.conf import Configuration
from minutch.errors import ConfigError
from plugins.parsefilter_naivebayes.bayes import Classifier, NaiveBayesParseFilter, words_of
from tests.support.pages import BASE_PLUGINS, links, parse

EXAMPLES = "1\tcrawler fetches web pages\n1\tweb crawler\n0\tcake with cream\n0\tbake a cake\n"
PAGE = "<body>{text} <a href=http://a.example/cake>c</a><a href=http://a.example/web>w</a>"


def configured(
    folder: Path, examples: str = EXAMPLES, words: str = "web\n", **values: str
) -> Configuration:
    """A configuration with its training file and word list."""
    (folder / "naivebayes-train.txt").write_text(examples, encoding="utf-8")
    (folder / "naivebayes-wordlist.txt").write_text(words, encoding="utf-8")
    plugins = f"parse-html|parsefilter-naivebayes|{BASE_PLUGINS}"
    return Configuration.load([folder], overrides={"plugin.includes": plugins, **values})


def kept(conf: Configuration, text: str) -> list[str]:
    return [url.rpartition("/")[2] for url, _ in links(parse(PAGE.format(text=text), conf))]


def test_links_of_a_page_on_the_subject_stay(tmp_path: Path) -> None:
    assert kept(configured(tmp_path), "the crawler fetches") == ["cake", "web"]


def test_of_others_those_with_a_word_of_the_list(tmp_path: Path) -> None:
    assert kept(configured(tmp_path), "bake the cake with cream") == ["web"]
    assert kept(configured(tmp_path, words="\n"), "bake the cake with cream") == []


def test_files_are_configured(tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("0\tcrawler crawler\n1\tcake cake\n")
    (tmp_path / "words.txt").write_text("cake\n")
    values = {
        "parsefilter.naivebayes.trainfile": "more.txt",
        "parsefilter.naivebayes.wordlist": "words.txt",
    }
    conf = configured(tmp_path, **values)
    assert kept(conf, "crawler") == ["cake"]
    assert kept(conf, "cake") == ["cake", "web"]


def test_words() -> None:
    assert words_of("A b-c  D9é ") == ["a", "bc", "", "d"]
    assert words_of("42 ") == [""]


def nutchs_answer(examples: list[tuple[bool, str]], text: str) -> bool:
    """The sums as Classify makes them, word by word."""
    known = {word for _, example in examples for word in words_of(example)}
    sums = []
    for kind in (False, True):
        own = [words_of(example) for relevant, example in examples if relevant is kind]
        words = [word for example in own for word in example]
        total = 0.0
        for word in words_of(text):
            count = words.count(word) if word else 0
            total += (math.log(count) if count else 0) + 1 - math.log(len(words) + len(known))
        sums.append(total + math.log(len(own)) - math.log(len(examples)))
    return not sums[0] > sums[1] + 1e-12


def test_sums_are_nutchs() -> None:
    random = Random(3)
    some = lambda: " ".join(  # noqa: E731
        random.choices(["web", "cake", "Crawl", "x-y", "", "9"], k=random.randint(1, 6))
    )
    answers = []
    for _ in range(300):
        examples = [
            (True, some()),
            (False, some()),
            *((random.random() < 0.5, some()) for _ in range(4)),
        ]
        text = some()
        answers.append(Classifier(examples).is_relevant(text))
        assert answers[-1] is nutchs_answer(examples, text)
    assert 50 < sum(answers) < 250


def test_examples_of_one_class_alone() -> None:
    assert Classifier([(True, "web")]).is_relevant("cake")
    assert not Classifier([(False, "web")]).is_relevant("cake")


@pytest.mark.parametrize(
    ("examples", "values", "message"),
    [
        ("", {}, "no example in naivebayes-train.txt"),
        ("relevant\tweb\n", {}, "no example"),
        (
            EXAMPLES,
            {"parsefilter.naivebayes.trainfile": "no.txt"},
            r"parsefilter\.naivebayes\.trainfile: no\.txt",
        ),
        (
            EXAMPLES,
            {"parsefilter.naivebayes.wordlist": ""},
            r"parsefilter\.naivebayes\.wordlist: expected",
        ),
    ],
)
def test_wrong_files(tmp_path: Path, examples: str, values: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        NaiveBayesParseFilter(configured(tmp_path, examples, **values), {})


def test_a_bad_line_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    NaiveBayesParseFilter(configured(tmp_path, f"# mine\n{EXAMPLES}2\tx\n"), {})
    assert "naivebayes-train.txt, line 6: expected 0 or 1" in caplog.text
    assert caplog.text.count("expected") == 1
