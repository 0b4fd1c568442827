"""protocol-archive: a fetch, and a whole crawl, answered from archives; nothing is asked of the
web.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from minutch import jobs
from minutch.conf import Configuration
from minutch.errors import ConfigError, PluginError, StoreError
from minutch.plugin.repository import PluginRepository
from minutch.records.metadata import CONTENT_FETCH_TIME_KEY
from tests.support.archives import DATE, HTML, WarcMaker, digest_of
from tests.support.crawldbs import read_db
from tests.support.segments import conf_for, contents, fetch_segment, fetched, make_segment

OLD, NEW = (
    b"<html>old</html>",
    b'<html><title>new</title><a href="/linked">linked</a> <a href="/private/x">x</a></html>',
)
MIDDLE = "2026-01-03T00:00:00Z"
LATE = "2026-02-01T00:00:00Z"
HOST = "http://h.example"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "x.warc.gz"
    with WarcMaker(path) as warc:
        warc.page(
            f"{HOST}/robots.txt",
            b"User-agent: *\nDisallow: /private\n",
            ("Content-Type", "text/plain"),
        )
        warc.page(f"{HOST}/", OLD)
        warc.page(f"{HOST}/", NEW, date=LATE)
        warc.not_modified(f"{HOST}/", date="2026-03-01T00:00:00Z")
        warc.page(
            f"{HOST}/linked",
            gzip.compress(b"<html>packed</html>"),
            HTML,
            ("Content-Encoding", "gzip"),
        )
        warc.page(f"{HOST}/private/x", b"<html>private</html>")
        warc.page(f"{HOST}/moved", b"", ("Location", f"{HOST}/linked"), status="301 Moved")
        warc.page(f"{HOST}/%C3%A4", b"<html>umlaut</html>")
        warc.page("https://other.example/", b"<html>other</html>")
        warc.revisit(f"{HOST}/same", digest_of(OLD), f"{HOST}/", DATE, date=MIDDLE)
        warc.revisit(f"{HOST}/lost", digest_of(b"?"), "http://nowhere/", DATE, date=MIDDLE)
    return path


def conf(archive: Path | str, **more: str) -> Configuration:
    plugins = "protocol-archive|parse-html|urlnormalizer-pass|scoring-opic"
    return conf_for(plugin__includes=plugins, archive__files=str(archive), **more)


def test_a_fetch_is_answered(archive: Path, tmp_path: Path) -> None:
    """The newest visit with content answers; hosts and ports stay as they are, no page is 404,
    robots.txt is obeyed.
    """
    names = ("", "linked", "private/x", "moved", "ä", "same", "lost", "absent")
    segment = make_segment(
        tmp_path, [*(f"{HOST}/{name}" for name in names), "https://Other.example:443"]
    )
    fetch_segment(segment, conf(archive))
    found = {
        url.removeprefix(HOST): datum[0].status_name for url, datum in fetched(segment).items()
    }
    assert found == {
        "/": "fetch_success", "/linked": "fetch_success", "/private/x": "fetch_gone",
        "/moved": "fetch_redir_perm",
        "/ä": "fetch_success", "/same": "fetch_success", "/lost": "fetch_gone",
        "/absent": "fetch_gone",
        "https://Other.example:443": "fetch_success",
    }  # fmt: skip
    pages = contents(segment)
    assert pages[f"{HOST}/"].content == NEW
    assert pages[f"{HOST}/"].metadata.get(CONTENT_FETCH_TIME_KEY) == "1769904000000"
    assert pages[f"{HOST}/linked"].content == b"<html>packed</html>"
    assert pages[f"{HOST}/same"].content == OLD
    assert pages[f"{HOST}/ä"].content == b"<html>umlaut</html>"


def test_visits_up_to_a_time(archive: Path, tmp_path: Path) -> None:
    for number, (until, body) in enumerate(
        {MIDDLE: OLD, "2026-02": NEW, "20250101": None, "": NEW}.items()
    ):
        segment = make_segment(tmp_path / str(number), [f"{HOST}/"])
        fetch_segment(segment, conf(archive, archive__until=until))
        found = contents(segment).get(f"{HOST}/")
        assert (None if found is None else found.content) == body
    with pytest.raises(ConfigError, match=r"archive\.until"):
        fetch_segment(
            make_segment(tmp_path / "wrong", [f"{HOST}/"]),
            conf(archive, archive__until="yesterday"),
        )


def test_a_whole_crawl_without_the_web(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text(f"{HOST}/\n{HOST}/moved\n")
    jobs.crawl(tmp_path / "urls.txt", tmp_path / "crawl", 3, conf=conf(archive))
    known = {
        url.removeprefix(HOST): datum.status_name
        for url, datum in read_db(tmp_path / "crawl/crawldb").items()
    }
    assert known == {
        "/": "db_fetched", "/linked": "db_fetched", "/moved": "db_redir_perm",
        "/private/x": "db_gone",
    }  # fmt: skip


def test_the_index_is_made_once_and_anew_when_archives_change(
    archive: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    own = tmp_path / "x.warc.gz"
    own.write_bytes(archive.read_bytes())
    state = tmp_path / "state"
    made = []
    for number in range(4):
        if number == 2:
            os.utime(own, (1, 1))
        if number == 3:
            next(state.glob("archives-*.sqlite")).write_bytes(b"damaged")
            for path in state.glob("archives-*.sqlite"):
                path.write_bytes(b"damaged")
        caplog.clear()
        segment = make_segment(tmp_path / str(number), [f"{HOST}/"])
        fetch_segment(
            segment, conf(own, minutch__fetch__state=str(state), http__robots__cache__seconds="0")
        )
        assert contents(segment)[f"{HOST}/"].content == NEW
        made.append(any("for the index" in message for message in caplog.messages))
    assert made == [True, False, True, True]
    assert not [path for path in state.iterdir() if path.name.startswith(".archives-")]


def test_a_cdxj_file_takes_the_place_of_reading_the_archive(archive: Path, tmp_path: Path) -> None:
    from minutch.warc.reading.archivefiles import ArchiveFile, find_archives
    from minutch.warc.reading.visits import Visit, VisitKind

    (found,) = find_archives([archive])
    assert isinstance(found, ArchiveFile)
    lines = []
    for visit in found.open().visits():
        if isinstance(visit, Visit) and visit.kind is VisitKind.ANSWER:
            entry = {
                "url": visit.url,
                "offset": str(visit.place.offset),
                "filename": archive.name,
                "mime": "text/html",
            }
            lines.append(f"x 20260102030405 {json.dumps(entry)}\n")
    (archive.parent / "x.cdxj").write_text("".join(lines))
    segment = make_segment(tmp_path, [f"{HOST}/linked", f"{HOST}/private/x"])
    fetch_segment(segment, conf(archive.parent / "x.cdxj"))
    assert {url: datum[0].status_name for url, datum in fetched(segment).items()} == {
        f"{HOST}/linked": "fetch_success", f"{HOST}/private/x": "fetch_gone",
    }  # fmt: skip


def test_what_is_wrong_ends_the_fetch(archive: Path, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, PluginError), match=r"archive\.files"):
        fetch_segment(make_segment(tmp_path / "a", [f"{HOST}/"]), conf(""))
    with pytest.raises(StoreError, match=r"absent\.warc\.gz"):
        fetch_segment(make_segment(tmp_path / "b", [f"{HOST}/"]), conf(tmp_path / "absent.warc.gz"))
    (tmp_path / "text").write_text("no archive")
    with pytest.raises(StoreError, match="not an archive"):
        fetch_segment(make_segment(tmp_path / "c", [f"{HOST}/"]), conf(tmp_path / "text"))


def test_the_plugin_is_on_only_if_asked_for() -> None:
    active = PluginRepository(conf_for(plugin__includes="protocol-http")).active
    assert "protocol-archive" not in active
