"""WARC files written while pages are fetched: what is in them, and that each page is in them once,
whatever happens.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest

from minutch.clock import SystemClock
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.results.fetchlog import FetchLog, Frame, WarcCapture, frames
from minutch.cycle.fetch.results.pagearchive import FOLDER, PageArchive, finish, reconcile
from minutch.cycle.fetch.settings import WarcSettings
from minutch.cycle.segment.store import CONTENT, WARC, Segment
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import Metadata
from minutch.records.protocol import Content
from tests.support.archived import CHANGED, MODIFIED, Record, archived_crawl, checked
from tests.support.misbehaving import FAULTS, MisbehavingServer
from tests.support.segments import conf_for, fetch_segment, fetched, make_segment


def archived(segment: Segment | Path) -> list[Record]:
    folder = (segment.path if isinstance(segment, Segment) else segment) / WARC
    return [record for path in sorted(folder.iterdir()) for record in checked(path)]


def pages(records: list[Record]) -> Counter[str | None]:
    return Counter(
        target for kind, target, _, _, _ in records if kind in ("response", "revisit", "resource")
    )


def test_all_answers_of_a_crawl_are_archived() -> None:
    crawl = archived_crawl()
    first, second = (archived(path) for path in crawl.segments)
    assert set(pages(first).values()) == {1}
    codes = {
        target: block.split(b" ", 2)[1] for kind, target, _, _, block in first if kind == "response"
    }
    assert codes[f"{crawl.site}/closed.html"] == b"410"
    assert codes[f"{crawl.site}/news"] == b"302"
    requests = {target: block for kind, target, _, _, block in first if kind == "request"}
    assert set(requests) == set(pages(first))
    assert requests[f"{crawl.site}/"].startswith(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:")
    assert all(
        fields["WARC-Protocol"] == "http/1.1"
        for kind, _, _, fields, _ in first
        if kind == "response"
    )
    dates = {target: date for kind, target, date, _, _ in first if kind == "response"}
    revisits = {
        target: (fields, block) for kind, target, _, fields, block in second if kind == "revisit"
    }
    assert {CHANGED, "/news"}.isdisjoint(url.removeprefix(crawl.site) for url in map(str, revisits))
    assert len(revisits) >= 4
    for target, (fields, block) in revisits.items():
        assert fields["WARC-Refers-To-Date"] == dates[target]
        assert (
            ("server-not-modified" in fields["WARC-Profile"])
            is (target == crawl.site + MODIFIED)
            is (not block)
        )
    notes = [
        block
        for kind, target, _, _, block in second
        if kind == "metadata" and target == crawl.site + MODIFIED
    ]
    assert b"http-status: HTTP/1.1 304 Not Modified\r\nhttp-header: Server: " in notes[0]


def test_pages_are_the_bytes_of_the_segment() -> None:
    segment = Segment(archived_crawl().segments[0])
    bodies = {
        target: block.partition(b"\r\n\r\n")[2]
        for kind, target, _, _, block in archived(segment)
        if kind == "response"
    }
    contents = {url: value for url, value in segment.records(CONTENT) if isinstance(value, Content)}
    assert len(contents) >= 7
    assert all(bodies[url] == content.content for url, content in contents.items())


def test_instead_of_content(tmp_path: Path) -> None:
    with MisbehavingServer() as server:
        urls = [server.url(f"ok?{n}") for n in range(20)]
        segment = make_segment(tmp_path, urls)
        conf = conf_for(
            fetcher__warc="true",
            fetcher__store__content="false",
            warc__output__segment__size="3000",
        )
        fetch_segment(segment, conf, threads=4)
    assert not segment.has(CONTENT)
    assert pages(archived(segment)) == Counter(urls)
    names = sorted(path.name for path in (segment.path / WARC).iterdir())
    assert names == [f"minutch-20260101000000-00-{n:05}.warc.gz" for n in range(len(names))]
    assert len(names) > 1


def test_what_servers_do_wrong_makes_good_records(tmp_path: Path) -> None:
    with MisbehavingServer() as server:
        segment = make_segment(tmp_path, [server.url(name) for name in FAULTS])
        conf = conf_for(
            fetcher__warc="true",
            fetcher__threads__per__queue="40",
            http__timeout="1500",
            http__time__limit="3",
        )
        fetch_segment(segment, conf, threads=40)
    found = pages(archived(segment))
    assert set(found.values()) == {1}
    contents = [url for url, _ in segment.records(CONTENT)]
    assert set(contents) <= set(found)


def test_several_processes(tmp_path: Path) -> None:
    with MisbehavingServer() as server:
        urls = [server.url(f"ok?{n}") for n in range(10)]
        urls += [url.replace("127.0.0.1", "localhost") for url in urls]
        segment = make_segment(tmp_path, urls)
        fetch_segment(
            segment, conf_for(fetcher__warc="true", minutch__fetch__processes="2"), threads=4
        )
    assert pages(archived(segment)) == Counter(urls)


# -- after a kill ----------------------------------------------------------------------------------


URLS = [f"http://a.example/{n}" for n in range(6)]


def page_of(url: str) -> WarcCapture:
    head = Metadata.of({"_response.headers_": "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"})
    return WarcCapture(
        url,
        1_700_000_000_000,
        CrawlDatum(),
        Content(url, url, url.encode() * 100, "text/html", head),
    )


class Fetch:
    """A fetch's log and WARC files, written as the loop writes them."""

    def __init__(self, folder: Path, size: int = 1 << 30) -> None:
        self.segment = Segment(folder / "20260101000000")
        self.work = self.segment.path / "_fetch"
        self.work.mkdir(parents=True, exist_ok=True)
        self.settings = WarcSettings.from_conf(conf_for(warc__output__segment__size=str(size)))

    @property
    def log(self) -> Path:
        return self.work / "log-0"

    def write(self, urls: list[str]) -> None:
        archive = PageArchive(self.segment, self.work / FOLDER, 0, self.settings, SystemClock())
        with closing(FetchLog(self.log, "")) as log:
            for url in urls:
                frame = Frame(Outcome.FETCHED, [url], captures=[page_of(url)])
                archive.keep(frame)
                log.append(frame)
        archive.close()

    def recover(self) -> list[str]:
        reconcile(self.segment, self.work, [self.log])
        return [url for frame in frames(self.log) for url in frame.listed]

    def go_on(self) -> None:
        """Fetch what the log does not have, and end."""
        done = self.recover()
        self.write([url for url in URLS if url not in done])
        finish(self.segment, self.work)
        assert pages(archived(self.segment)) == Counter(URLS)

    def files(self) -> list[Path]:
        return sorted((self.work / FOLDER).iterdir())


def test_a_fetch_goes_on_in_the_file_that_it_left(tmp_path: Path) -> None:
    fetch = Fetch(tmp_path)
    fetch.write(URLS[:3])
    fetch.go_on()
    assert [kind for kind, *_ in archived(fetch.segment)].count("warcinfo") == 1


@pytest.mark.parametrize("lost", [1, 7, 8, 9, 100, 1000])
def test_a_file_that_lost_its_end_takes_the_log_back(tmp_path: Path, lost: int) -> None:
    """A power cut: the log reached the medium, the WARC file did not."""
    fetch = Fetch(tmp_path)
    fetch.write(URLS[:4])
    (path,) = fetch.files()
    os.truncate(path, path.stat().st_size - lost)
    assert fetch.recover() == URLS[: 4 - 1 - lost // 500]
    fetch.go_on()


def test_zeros_at_the_end_are_no_records(tmp_path: Path) -> None:
    fetch = Fetch(tmp_path)
    fetch.write(URLS[:4])
    (path,) = fetch.files()
    size = path.stat().st_size
    os.truncate(path, size - 50)
    os.truncate(path, size)
    assert fetch.recover() == URLS[:3]
    fetch.go_on()


@pytest.mark.parametrize(("at", "size"), [(0, 10), (200, 1), (0, 4096)])
def test_a_lost_beginning_takes_all_of_the_file_back(tmp_path: Path, at: int, size: int) -> None:
    """A power cut loses what is not on the medium in any order: here the warcinfo record, but no
    page.
    """
    fetch = Fetch(tmp_path)
    fetch.write(URLS[:4])
    (path,) = fetch.files()
    data = bytearray(path.read_bytes())
    data[at : at + size] = bytes(size)
    path.write_bytes(data)
    assert fetch.recover() == []
    assert fetch.files() == []
    fetch.go_on()


def test_a_lost_page_takes_back_those_after_it(tmp_path: Path) -> None:
    fetch = Fetch(tmp_path)
    fetch.write(URLS[:2])
    (path,) = fetch.files()
    size = path.stat().st_size
    fetch.write(URLS[2:5])
    data = bytearray(path.read_bytes())
    data[size + 20 : size + 60] = bytes(40)
    path.write_bytes(data)
    assert fetch.recover() == URLS[:2]
    assert path.stat().st_size == size
    fetch.go_on()


@pytest.mark.parametrize("size", [1, 1 << 30])
@pytest.mark.parametrize("kept", range(5))
def test_what_the_log_does_not_have_is_cut_off(tmp_path: Path, kept: int, size: int) -> None:
    """A kill between the write to the WARC file and that to the log; with a file a page, whole
    files go.
    """
    fetch = Fetch(tmp_path, size)
    fetch.write(URLS[:kept])
    log = fetch.log.read_bytes()
    fetch.write(URLS[kept:5])
    fetch.log.write_bytes(log)
    assert fetch.recover() == URLS[:kept]
    fetch.go_on()


def test_files_are_synced_while_others_begin(tmp_path: Path) -> None:
    fetch = Fetch(tmp_path, 1)
    archive = PageArchive(fetch.segment, fetch.work / FOLDER, 0, fetch.settings, SystemClock())
    stop, failures = Event(), []

    def sync() -> None:
        while not stop.is_set():
            try:
                archive.sync()
            except Exception as exc:  # noqa: BLE001 - the test asks which it was
                failures.append(exc)

    thread = Thread(target=sync)
    thread.start()
    for url in URLS * 10:
        archive.keep(Frame(Outcome.FETCHED, [url], captures=[page_of(url)]))
    archive.close()
    stop.set()
    thread.join()
    assert not failures
    assert len(fetch.files()) == 60


def test_a_torn_log_and_a_torn_file(tmp_path: Path) -> None:
    fetch = Fetch(tmp_path)
    fetch.write(URLS[:5])
    os.truncate(fetch.log, fetch.log.stat().st_size - 3)
    (path,) = fetch.files()
    os.truncate(path, path.stat().st_size - 3)
    assert fetch.recover() == URLS[:4]
    fetch.go_on()


def test_a_kill_while_the_files_are_given_their_place(tmp_path: Path) -> None:
    fetch = Fetch(tmp_path, 1)
    fetch.write(URLS)
    place = fetch.segment.path / WARC
    place.mkdir()
    for path in fetch.files()[:3]:
        path.rename(place / path.name)
    assert fetch.recover() == URLS
    fetch.go_on()
    assert not (fetch.work / FOLDER).exists()


def test_settings_are_implied(tmp_path: Path) -> None:
    """Heads, requests and addresses are in the files whatever store.* says; without fetcher.warc
    nothing is.
    """
    with MisbehavingServer() as server:
        urls = [server.url("ok?1")]
        with_files, without = make_segment(tmp_path / "a", urls), make_segment(tmp_path / "b", urls)
        fetch_segment(with_files, conf_for(fetcher__warc="true"))
        fetch_segment(without, conf_for())
    assert [kind for kind, *_ in archived(with_files)] == [
        "warcinfo",
        "response",
        "request",
        "metadata",
    ]
    assert "_warc_" in {str(key) for key in fetched(with_files)[urls[0]][0].metadata}
    assert not without.has(WARC)
    assert "_warc_" not in {str(key) for key in fetched(without)[urls[0]][0].metadata}
