"""The fetch steps of the golden crawls, from Nutch's fetch lists on the same site: the records come
out as Nutch's.

The site is served on a free port of four digits, which takes the place of Nutch's in everything
that is compared (it is as long, so lengths stay). What differs is taken off both sides by rules
that name the reason (`DIFFERENCES`).
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from minutch.conf import Configuration
from minutch.cycle.segment.store import LAYOUTS, Segment
from minutch.cycle.segment.storedrecords import text_key
from minutch.hadoop.formats.javaio import DataInput, decode_text, encode_text
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import TEXT, SequenceFileWriter
from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import Content
from tests.support.examples import few
from tests.support.golden import GOLDEN, needs_golden
from tests.support.segments import fetch_segment

SMALL, ADAPTIVE = GOLDEN / "crawl-small", GOLDEN / "crawl-small-adaptive"
PORTS: Final = {SMALL: b"8810", ADAPTIVE: b"8812"}
RUNS = [
    (run, number, segment.name)
    for run in ("crawl-small/run-default-r2", "crawl-small/run-default-r1",
                "crawl-small/run-rich-r2",
                "crawl-small-adaptive/run-r2")
    for number, segment in enumerate(sorted((GOLDEN / run / "crawl" / "segments").glob("2*")), 1)
]  # fmt: skip

DIFFERENCES: Final = {
    "lastModified of a success": (
        "Nutch shows that of another page: all successes share one ProtocolStatus"
    ),
    "notfetching": "URLs that Nutch drops without a record get one",
    "Connection: close": "connections are kept",
    "http.content.truncated": "content over the limit is marked",
    "deflate.html": "Nutch reads nothing from zlib-wrapped deflate",
    "http:/page2.html": "a URL without a host is no way to the crawler's own machine",
}
_SUCCESS: Final = re.compile(r"(success\(1\), lastModified=)\d+")
_CLOCK: Final = {"_rs_", "nutch.fetch.time"}


def free_port() -> int:
    """A free port of four digits."""
    for port in range(4000, 9999):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port of four digits")


class Site:
    """A golden site on another port; its pages may change from round to round."""

    def __init__(self, golden: Path, folder: Path) -> None:
        self.golden_port = PORTS[golden]
        self.port = str(free_port()).encode()
        self.round_file = folder.with_suffix(".round")
        shutil.copytree(golden / "site", folder)
        for path in folder.rglob("*"):
            if path.is_file():
                path.write_bytes(self.away(path.read_bytes()))
        self.process = subprocess.Popen(
            [
                sys.executable,
                str(SMALL / "siteserver.py"),
                str(folder),
                self.port.decode(),
                "--round-file",
                str(self.round_file),
            ],
            stderr=subprocess.DEVNULL,
        )
        hosts = json.loads((folder / "routes.json").read_text())
        for address in {host if host[0].isdigit() else "127.0.0.1" for host in hosts}:
            self._wait(address)

    def _wait(self, address: str) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                socket.create_connection((address, int(self.port)), 5).close()
            except OSError:
                continue
            return
        raise AssertionError(f"the site server does not answer at {address}")

    def away(self, data: bytes) -> bytes:
        """Rewrites the golden port to ours; robots.txt asks for less time between pages, in as many
        bytes.
        """
        return data.replace(self.golden_port, self.port).replace(
            b"Crawl-delay: 0.05", b"Crawl-delay: 0.01"
        )

    def back(self, text: str) -> str:
        """Rewrites our port to the golden one."""
        return text.replace(f":{self.port.decode()}", f":{self.golden_port.decode()}")


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], Site]]:
    running: dict[Path, Site] = {}

    def site(golden: Path) -> Site:
        if golden not in running:
            running[golden] = Site(golden, tmp_path_factory.mktemp("site") / golden.name)
        return running[golden]

    yield site
    for started in running.values():
        started.process.kill()
        started.process.wait()


def copy_fetch_list(golden: Segment, segment: Segment, site: Site) -> None:
    """crawl_generate with our port."""
    folder = segment.path / "crawl_generate"
    folder.mkdir(parents=True)
    for part in golden.parts("crawl_generate"):
        with (
            SequenceFileReader(part) as reader,
            SequenceFileWriter(
                folder / part.name, TEXT, LAYOUTS["crawl_generate"].value_class
            ) as writer,
        ):
            for key, value in reader:
                url = decode_text(site.away(encode_text(DataInput(key).read_text())))
                datum = CrawlDatum.from_bytes(value)
                for name in list(datum.metadata):
                    if str(name) == "_repr_":
                        datum.metadata.set_text(
                            "_repr_", site.away(str(datum.metadata[name]).encode()).decode()
                        )
                writer.append_raw(text_key(encode_text(url)), datum.to_bytes())


def fetch_records(segment: Segment, site: Site | None = None) -> dict[str, list[str]]:
    """crawl_fetch as comparable text by URL."""
    found: dict[str, list[str]] = {}
    for url, datum in segment.records("crawl_fetch"):
        assert isinstance(datum, CrawlDatum)
        metadata = {str(k): str(v) for k, v in datum.metadata.items() if str(k) not in _CLOCK}
        status = metadata.get("_pst_", "")
        if status.startswith("notfetching"):
            continue
        metadata["_pst_"] = _SUCCESS.sub(r"\1*", status)
        text = repr((datum.status_name, datum.fetch_interval, datum.score, datum.modified_time,
                     datum.retries, datum.signature, sorted(metadata.items())))  # fmt: skip
        back = site.back if site is not None else str
        found.setdefault(back(url), []).append(back(text))
    return {url: sorted(texts) for url, texts in found.items() if url != "http:/page2.html"}


def content_records(segment: Segment, site: Site | None = None) -> dict[str, list[str]]:
    """content as comparable text by URL."""
    back = site.back if site is not None else str
    found: dict[str, list[str]] = {}
    for url, content in segment.records("content"):
        assert isinstance(content, Content)
        body = content.content.decode("latin-1") if "deflate" not in url else ""
        metadata = {
            name: [
                value.replace("Connection: close\r\n", "") if name == "_request_" else value
                for value in values
            ]
            for name, values in content.metadata.items()
            if name not in _CLOCK and not name.startswith("http.content.truncated")
        }
        text = repr((content.base, content.content_type, body, sorted(metadata.items())))
        found.setdefault(back(url), []).append(back(text))
    return {url: sorted(texts) for url, texts in found.items()}


def run_conf(run: str) -> Configuration:
    """The run's configuration, as far as a plugin of ours answers to it."""
    folder = (
        ADAPTIVE / "conf"
        if "adaptive" in run
        else SMALL / ("conf-rich" if "rich" in run else "conf-default")
    )
    conf = Configuration.load([folder])
    includes = (
        "protocol-http|urlfilter-(regex|validator)|urlnormalizer-(pass|regex|basic|querystring)"
        "|scoring-(opic|depth)"
    )
    if "rich" not in run:
        includes = "protocol-http|urlfilter-regex|urlnormalizer-(pass|regex|basic)|scoring-opic"
    return conf.with_values(
        {
            "plugin.includes": includes,
            "http.filter.ipaddress.include": "loopback",
            "http.retry.after.max.seconds": "0",
            "http.store.etag": "false",
            "fetcher.exceptions.per.queue.in.row": "false",
            "http.agent.version": (
                conf.get("http.agent.version") or "" if "rich" in run else "Nutch-1.23-SNAPSHOT"
            ),
        }
    )


@needs_golden
@pytest.mark.parametrize(("run", "number", "name"), few(RUNS, 6))
def test_fetch_step(
    run: str, number: int, name: str, sites: Callable[[Path], Site], tmp_path: Path
) -> None:
    golden = Segment(GOLDEN / run / "crawl" / "segments" / name)
    segment = Segment(tmp_path / "segments" / name)
    site = sites((GOLDEN / run).parent)
    site.round_file.write_text(str(number))
    copy_fetch_list(golden, segment, site)
    fetch_segment(segment, run_conf(run), threads=10)
    assert fetch_records(segment, site) == fetch_records(golden)
    assert content_records(segment, site) == content_records(golden)
