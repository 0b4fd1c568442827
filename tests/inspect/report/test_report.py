"""The command: what it writes, what it refuses, what it says."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from pathlib import Path

import polars as pl
import pytest

from minutch import jobs
from minutch.commands.declaration import FAILED
from minutch.errors import FormatError, StoreError, UsageError
from minutch.inspect.report import reportfile
from minutch.inspect.report.facts import Facts, shaped
from minutch.inspect.report.reportfile import read_facts
from tests.inspect.report.conftest import Written, context
from tests.inspect.report.madeup import BAD
from tests.support.commands import command
from tests.support.crawldbs import printed

run = command("report").run


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A crawl that has not begun."""
    (tmp_path / "crawl" / "segments").mkdir(parents=True)
    return tmp_path / "crawl"


def test_a_report_under_its_default_name(
    harbours: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reportfile, "gathered", lambda *_, **__: harbours.facts)
    monkeypatch.chdir(tmp_path)
    job = context(harbours.crawl.now)
    assert run([str(harbours.folder)], job) == 0
    assert printed(job) == f"harbours-report.html: {len(harbours.crawl.entries)} URLs, 6 rounds\n"
    assert [path.name for path in tmp_path.iterdir()] == ["harbours-report.html"]
    found = read_facts(tmp_path / "harbours-report.html")
    assert found.tables.keys() == harbours.facts.tables.keys()
    assert found["statuses"].equals(harbours.facts["statuses"])


def test_the_same_crawl_at_the_same_time_is_the_same_file(hostile: Written, tmp_path: Path) -> None:
    """As the page of the facts that were gathered before."""
    target = tmp_path / "out.html"
    assert run([str(hostile.folder), "-o", str(target)], context(hostile.crawl.now)) == 0
    assert target.read_bytes() == reportfile.to_html(hostile.facts).encode()


def test_a_report_is_replaced_and_nothing_else(empty: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.html"
    words = [str(empty), "-o", str(target)]
    target.write_text("<!DOCTYPE html>my own page")
    with pytest.raises(StoreError, match="is not a report") as caught:
        run(words, context(0))
    assert "--force" in caught.value.hint
    assert target.read_text() == "<!DOCTYPE html>my own page"
    assert run([*words, "--force"], context(0)) == 0
    before = target.read_bytes()
    assert run(words, context(86_400_000)) == 0
    assert target.read_bytes() not in (before, b"")


def test_a_comparison(hostile: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an earlier report of the crawl; with one of another, which is said."""
    monkeypatch.setattr(reportfile, "gathered", lambda *_, **__: hostile.facts)
    target = tmp_path / "out.html"
    target.write_text(reportfile.to_html(hostile.facts))
    words, job = [str(hostile.folder), "-o", str(target), "--compare", str(target)], context(1)
    assert run(words, job) == 0
    assert "Since the earlier report" in target.read_text()
    assert job.err.getvalue() == ""  # type: ignore[attr-defined]


def test_a_comparison_with_another_crawl_says_so(
    harbours: Written, hostile: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reportfile, "gathered", lambda *_, **__: hostile.facts)
    other, job = tmp_path / "other.html", context(1)
    facts = harbours.facts
    rounds = facts["rounds"].with_columns(segment=facts["rounds"]["segment"] + "x")
    other.write_text(reportfile.to_html(Facts("other", 0, {"rounds": rounds})))
    words = [str(hostile.folder), "-o", str(tmp_path / "out.html"), "-compare", str(other)]
    assert run(words, job) == 0
    assert "another crawl" in job.err.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        b"\xff\xfe",
        reportfile.MARK.encode(),
        reportfile.MARK.encode() + reportfile._FACTS.encode() + b"{}</script>",
    ],
)
def test_what_is_no_report_can_not_be_compared_with(
    hostile: Written, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "old.html").write_bytes(content)
    with pytest.raises((StoreError, FormatError), match=r"old\.html"):
        run(
            [
                str(hostile.folder),
                "-o",
                str(tmp_path / "new.html"),
                "-compare",
                str(tmp_path / "old.html"),
            ],
            context(0),
        )
    assert not (tmp_path / "new.html").exists()


def test_nothing_to_report_on(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no folder"):
        run([str(tmp_path / "nothing")], context(0))
    with pytest.raises(StoreError, match="is no crawl"):
        run([str(tmp_path)], context(0))
    with pytest.raises(UsageError):
        run([], context(0))
    with pytest.raises(UsageError):
        run(["a", "b"], context(0))


def test_a_crawl_without_anything(empty: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.html"
    assert run([str(empty), "-o", str(target)], context(0)) == 0
    assert "neither entries nor segments" in target.read_text()


def test_a_damaged_file_leaves_no_report(hostile: Written, tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    hostile.crawl.write(folder)
    data = next(folder.glob("segments/*/crawl_fetch/*/data"))
    data.write_bytes(data.read_bytes()[:-100])
    with pytest.raises(FormatError, match="crawl_fetch"):
        run([str(folder), "-o", str(tmp_path / "out.html")], context(0))
    assert not (tmp_path / "out.html").exists()


def test_exit_codes_of_the_command(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from minutch.commands.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["report", str(empty)]) == 0
    assert main(["report"]) == FAILED
    assert main(["report", "nowhere"]) == FAILED
    assert main(["report", str(empty), "-o", str(tmp_path)]) == FAILED
    (tmp_path / "file").touch()
    assert main(["report", str(empty), "-o", "file/out.html"]) == FAILED
    assert jobs.report(str(empty), "-o", str(tmp_path / "again.html")) is not None


# -- the page --------------------------------------------------------------------------------------


def test_the_policy_allows_its_own_style_and_script_alone(harbours: Written) -> None:
    text = reportfile.to_html(harbours.facts)
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src &#x27;sha256-{digest}&#x27;" in text
    assert " style=" not in text and " onclick" not in text
    assert not re.findall(r"(?:src|srcset|@import|url)\s*[=(]\s*[\"']?(?:https?:)?//", text)


def test_what_comes_from_the_web_is_text(hostile: Written) -> None:
    text = reportfile.to_html(hostile.facts, hostile.facts)
    shown = text.partition('<script type="application/json"')[0]
    assert BAD not in text
    assert "<script" not in shown and "<img" not in shown
    assert 'href="javascript:' not in shown
    assert not re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)
    assert "\\u202e" in shown and "\\x1b[31m" in shown


def test_every_section_of_a_crawl_that_has_all(harbours: Written) -> None:
    found = re.findall(r'<section id="(\w+)"', reportfile.to_html(harbours.facts, harbours.facts))
    names = ["rounds", "state", "hosts", "answers", "content", "depth", "freshness"]
    mended = ["broken", "redirects", "duplicates", "robots"]
    assert found == ["findings", "changes", *names, *mended]


def test_the_report_begins_with_what_was_found(harbours: Written) -> None:
    """A line for each kind of finding, with its number, one of them, and a link to a section that
    is there.
    """
    facts = harbours.facts
    text = reportfile.to_html(facts)
    found = text[text.index('<section id="findings"') : text.index("</section>")]
    lines = re.findall(r'<a href="#(\w+)">([\w-]+)</a>: .*?<td[^>]*>([\d,]+)<', found)
    assert facts["audit"].filter(pl.col("rule") == "broken-links")["example"][0] in found
    asked = {row["rule"]: row["findings"] for row in facts["audit"].to_dicts()}
    assert asked["broken-links"] and asked["equal-pages"]
    assert ("broken", "broken-links", f"{asked['broken-links']:,}") in lines
    assert all(f'<section id="{name}"' in text for name, _, _ in lines) and len(lines) >= 3
    assert "Not to be told from this crawl: " in found and "sitemap-not-200" in found


def test_nothing_to_mend_is_said() -> None:
    asked = shaped("audit", pl.DataFrame({"rule": ["slow"], "findings": [0]}))
    assert "Nothing that would have to be mended" in reportfile.to_html(
        Facts("x", 0, {"audit": asked})
    )
    assert "findings" not in re.findall(
        r'<section id="(\w+)"', reportfile.to_html(Facts("x", 0, {}))
    )
