"""The benchmark of documents counts right: words, what is extra, order, facts."""

from pathlib import Path

import pytest

from minutch.conf import Configuration
from tests.benchmarks import documents
from tests.benchmarks.documents import Answer, Made, ours, row, show
from tests.support.officefiles import paragraph, word


def test_what_is_counted() -> None:
    document = Made(Path("a.docx"), "by hand", ["One two", "two three"], "T", "http://e.org/", "D")
    answer = Answer("one two twothree", "T", ["http://e.org/x"], [], 0.5)
    cells, counts = row(document, answer)
    assert cells == ["2/4", "1", "0.57", "date", "0.50"]
    assert counts == {"right": 2, "wanted": 4, "extra": 1, "facts": 1}
    assert row(document, Answer(error="no"))[0][3] == "failed"


def test_documents_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.docx").write_bytes(word(paragraph("one two")))
    (tmp_path / "a.docx.txt").write_text("one two three")
    (tmp_path / "b.docx").write_bytes(word(paragraph("four")))
    (tmp_path / "b.docx.html").write_text("<p>four</p>")
    found = list(documents.given(tmp_path))
    conf = Configuration.load([], overrides={"plugin.includes": "parse-tika"})
    show(found, {"minutch": [ours(document, conf) for document in found]}, verbose=True)
    assert "| a.docx | given | 2/3 | 0 |" in (printed := capsys.readouterr().out)
    assert "minutch: 3 of 4 words right, 0 extra, 0 titles, links and dates lacking" in printed


def test_makers_that_are_not_here_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(documents.shutil, "which", lambda name: None)
    monkeypatch.setattr(documents, "MAKERS", {"a.x": ("Nothing", _missing)})
    assert list(documents.made(tmp_path)) == []
    assert "without Nothing: no module" in capsys.readouterr().out


def _missing(path: Path) -> list[str]:
    raise ImportError("no module")
