"""init: what it writes is read by the commands, and what is there stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.commands import cli


def test_a_new_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    assert cli.main(["init", str(folder)]) == 0
    assert sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    ) == [
        "conf/nutch-site.xml",
        "conf/regex-urlfilter.txt",
        "seeds/seeds.txt",
    ]
    out = capsys.readouterr().out
    assert out.endswith(f"\n\n  cd {folder}\n  minutch crawl seeds/ crawl/ 3\n")
    monkeypatch.chdir(folder)
    conf = cli.load_configuration(cli.Invocation(), {})
    assert conf.get_boolean("db.ignore.external.links") is True
    assert conf.get_boolean("db.update.unparsed.keeps.interval") is True
    assert "http.agent.name" not in conf or not conf.get("http.agent.name")
    assert conf.resource("regex-urlfilter.txt") == Path("conf/regex-urlfilter.txt")


def test_what_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "conf").mkdir()
    mine = tmp_path / "conf" / "nutch-site.xml"
    mine.write_text("<configuration/>")
    assert cli.main(["init", str(tmp_path)]) == 0
    assert mine.read_text() == "<configuration/>"
    assert f"kept  {mine}\n" in capsys.readouterr().out


def test_a_file_in_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "conf").write_text("")
    assert cli.main(["init", str(tmp_path)]) == 255
    assert capsys.readouterr().err == f"error: {tmp_path / 'conf'} is in the way\n"


def test_a_file_that_was_not_finished_is_made(tmp_path: Path) -> None:
    """A process that was killed leaves its work folder, never half a file."""
    left = tmp_path / "conf/.nutch-site.xml-4194305"
    left.mkdir(parents=True)
    (left / "nutch-site.xml").write_text("<conf")
    assert cli.main(["init", str(tmp_path)]) == 0
    assert sorted(path.name for path in (tmp_path / "conf").iterdir()) == [
        "nutch-site.xml",
        "regex-urlfilter.txt",
    ]
    assert (tmp_path / "conf/nutch-site.xml").read_text().endswith("</configuration>\n")
