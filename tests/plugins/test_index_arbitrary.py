"""index-arbitrary: Python code of the user's makes fields."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.errors import ConfigError
from tests.support.documents import Fields, Made, documents_of

CODE = """
from datetime import datetime, timezone

class Words:
    def __init__(self, url, *words, **seen):
        self.url, self.words, self.seen = url, words, seen

    def count(self, *more):
        return len(self.words) + len(more)

    def all(self):
        return [self.url, *self.words]

    def title(self):
        return self.seen["parse"].data.title

def length(url):
    return len(url)

def fails(url):
    return 1 / 0

def nothing(url):
    return None

def values(url):
    return (True, 1 << 40, 1 << 70, 0.5, datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc), b"x")

NUMBER = 7
"""


def conf_for(folder: Path, **settings: str) -> Configuration:
    (folder / "own_words.py").write_text(CODE)
    (folder / "broken_words.py").write_text("1 / 0")
    (folder / "old_words.py").write_text("str.missing")
    values = {
        f"index.arbitrary.{name.replace('__', '.').replace('_', '.')}": text
        for name, text in settings.items()
    }
    return Configuration.load([folder], overrides={"plugin.includes": "index-arbitrary"} | values)


def made(folder: Path, begin: Fields | None = None, **settings: str) -> Fields | None:
    """The fields of a page."""
    (found,) = documents_of(
        conf_for(folder, **settings), Made("http://a.example/"), begin=[begin] if begin else []
    )
    return found


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"className_0": "own_words.length"}, [17]),
        ({"className_0": "own_words:length"}, [17]),
        ({"className_0": "own_words.nothing"}, []),
        ({"className_0": "own_words.fails"}, []),
        ({"className_0": "own_words.Words", "methodName_0": "missing"}, []),
        ({"className_0": "own_words.Words", "methodName_0": "count"}, [0]),
        (
            {
                "className_0": "own_words.Words",
                "methodName_0": "count",
                "constructorArgs_0": "a, b",
            },
            [2],
        ),
        ({"className_0": "own_words.Words", "methodName_0": "count", "methodArgs_0": "c,d,e"}, [3]),
        (
            {"className_0": "own_words.Words", "methodName_0": "all", "constructorArgs_0": "a"},
            ["http://a.example/", "a"],
        ),
        (
            {
                "className_0": "own_words.Words",
                "methodName_0": "title",
                "all_fields_access_0": "true",
            },
            ["title"],
        ),
        ({"className_0": "own_words.Words", "methodName_0": "title"}, []),
        ({"className_0": "os.path.basename"}, [""]),
    ],
)
def test_values(settings: dict[str, str], expected: list[object], tmp_path: Path) -> None:
    found = made(tmp_path, fieldName_0="extra", **settings)
    assert found == ({"extra": expected} if expected else {})


def test_kinds_of_values(tmp_path: Path) -> None:
    found = made(tmp_path, fieldName_0="extra", className_0="own_words.values")
    assert found == {"extra": [True, 1 << 40, str(1 << 70), 0.5, 1000, "b'x'"]}


@pytest.mark.parametrize(("overwrite", "expected"), [("false", ["old", 17]), ("true", [17])])
def test_a_field_that_is_there(overwrite: str, expected: list[object], tmp_path: Path) -> None:
    settings = {"fieldName_0": "extra", "className_0": "own_words.length", "overwrite_0": overwrite}
    assert made(tmp_path, {"extra": ["old"]}, **settings) == {"extra": expected}


def test_several(tmp_path: Path) -> None:
    settings = {"fieldName_0": "a", "className_0": "own_words.length", "fieldName_1": "b"}
    settings |= {"className_1": "own_words.Words", "methodName_1": "count", "methodArgs_1": "x"}
    assert made(tmp_path, **settings) == {"a": [17]}
    assert made(tmp_path, function_count="2", **settings) == {"a": [17], "b": [1]}


def test_an_exception_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made(tmp_path, fieldName_0="extra", className_0="own_words.fails")
    assert (
        "http://a.example/: no field extra, own_words.fails: ZeroDivisionError: division by zero"
        in caplog.messages
    )


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"className_0": "own_words.length"}, r"index\.arbitrary\.fieldName\.0 is missing"),
        ({"fieldName_0": "x"}, r"index\.arbitrary\.className\.0 is missing"),
        (
            {"fieldName_0": "x", "className_0": "java.lang.String"},
            r"className\.0: java\.lang\.String .* Java classes can't",
        ),
        (
            {"fieldName_0": "x", "className_0": "own_words.missing"},
            "expected MODULE.NAME of a Python function or class",
        ),
        (
            {"fieldName_0": "x", "className_0": "own_words.NUMBER"},
            "expected MODULE.NAME of a Python function or class",
        ),
        (
            {"fieldName_0": "x", "className_0": "length"},
            "expected MODULE.NAME of a Python function or class",
        ),
        (
            {"fieldName_0": "x", "className_0": "broken_words.x"},
            "importing broken_words failed: ZeroDivisionError",
        ),
        (
            {"fieldName_0": "x", "className_0": "old_words.x"},
            "importing old_words failed: AttributeError",
        ),
    ],
)
def test_settings_without_sense(settings: dict[str, str], reason: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=reason):
        made(tmp_path, **settings)
