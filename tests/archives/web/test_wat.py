"""export wat: each record of the WARC files described, as the Common Crawl describes its own."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from minutch import jobs
from minutch.conf import Configuration
from minutch.warc.warcfile import sha1_digest
from tests.support.archived import archived_crawl, checked, read_records


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("wat")
    for form in ("warc", "wat"):
        words = (archived_crawl().folder, folder / form, "-prefix", "x", "-size", 6000)
        jobs.export(form, *words, conf=Configuration.load([]))
    return folder / "warc", folder / "wat"


def described(folder: Path) -> list[tuple[dict[str, str], Any]]:
    return [
        (fields, json.loads(block))
        for path in sorted(folder.iterdir())
        for kind, _, _, fields, block in checked(path)
        if kind == "metadata"
    ]


def test_each_record_is_described_where_it_lies(folders: tuple[Path, Path]) -> None:
    warc, wat = folders
    records = [record for path in sorted(warc.iterdir()) for record in read_records(path)]
    found = described(wat)
    assert len(found) == len(records) > 40
    for (kind, target, _, fields, block), (own, facts) in zip(records, found, strict=True):
        assert own["WARC-Refers-To"] == fields["WARC-Record-ID"]
        container, envelope = facts["Container"], facts["Envelope"]
        assert own["WARC-Target-URI"] == (target or container["Filename"])
        sizes = container["Gzip-Metadata"]
        start = int(container["Offset"])
        member = (warc / container["Filename"]).read_bytes()[
            start : start + int(sizes["Deflate-Length"])
        ]
        record = gzip.decompress(member)
        assert (int(sizes["Inflated-Length"]), int(sizes["Inflated-CRC"])) == (
            len(record),
            zlib.crc32(record),
        )
        assert envelope["WARC-Header-Metadata"] == fields
        assert int(envelope["WARC-Header-Length"]) == record.index(b"\r\n\r\n") + 4
        payload = envelope["Payload-Metadata"]
        assert payload["Actual-Content-Length"] == str(len(block)), kind
        assert payload["Block-Digest"] == sha1_digest(block)
        answer = payload.get("HTTP-Response-Metadata")
        if answer is not None:  # of a revisit, too: its own body, which is empty
            body = block[int(answer["Headers-Length"]) :]
            assert answer["Entity-Digest"] == sha1_digest(body), kind
        assert envelope["Format"] == "WARC/1.1"


def test_digests_are_those_of_the_records(tmp_path: Path) -> None:
    words = (archived_crawl().folder, tmp_path / "wat", "-prefix", "x", "-digest", "sha256")
    jobs.export("wat", *words, conf=Configuration.load([]))
    for _, facts in described(tmp_path / "wat"):
        envelope = facts["Envelope"]
        header, payload = envelope["WARC-Header-Metadata"], envelope["Payload-Metadata"]
        assert payload["Block-Digest"] == header["WARC-Block-Digest"]
        assert payload["Block-Digest"].startswith("sha256:")
        if header["WARC-Type"] == "response" and "HTTP-Response-Metadata" in payload:
            digest = payload["HTTP-Response-Metadata"]["Entity-Digest"]
            assert digest == header["WARC-Payload-Digest"]


def test_the_shape_is_the_common_crawls(folders: tuple[Path, Path]) -> None:
    """The keys of a record of CC-MAIN-2024-22, in its order."""
    by_type = {
        facts["Envelope"]["WARC-Header-Metadata"]["WARC-Type"]: facts
        for _, facts in described(folders[1])
    }
    request = by_type["request"]
    assert list(request["Container"]) == ["Filename", "Compressed", "Offset", "Gzip-Metadata"]
    assert list(request["Envelope"]) == [
        "Payload-Metadata",
        "Format",
        "WARC-Header-Length",
        "WARC-Header-Metadata",
    ]
    payload = request["Envelope"]["Payload-Metadata"]
    assert list(payload) == [
        "Actual-Content-Type", "HTTP-Request-Metadata", "Actual-Content-Length",
        "Trailing-Slop-Length", "Block-Digest",
    ]  # fmt: skip
    http = payload["HTTP-Request-Metadata"]
    assert list(http) == [
        "Request-Message", "Headers-Length", "Headers", "Entity-Length", "Entity-Digest",
        "Entity-Trailing-Slop-Length",
    ]  # fmt: skip
    assert (
        http["Request-Message"]["Method"] == "GET"
        and http["Request-Message"]["Version"] == "HTTP/1.1"
    )
    assert int(http["Headers-Length"]) == int(payload["Actual-Content-Length"]) - 2
    assert http["Entity-Digest"] == "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
    metadata = by_type["metadata"]["Envelope"]["Payload-Metadata"]
    assert metadata["Actual-Content-Type"] == "application/metadata-fields"
    assert metadata["WARC-Metadata-Metadata"]["Metadata-Records"][0]["Name"] == "fetchTimeMs"
    info = by_type["warcinfo"]["Envelope"]["Payload-Metadata"]["WARC-Info-Metadata"]
    assert info["format"] == "WARC File Format 1.1"


def test_pages_are_looked_into(folders: tuple[Path, Path]) -> None:
    pages = {
        header["WARC-Target-URI"]: facts["Envelope"]["Payload-Metadata"]["HTTP-Response-Metadata"]
        for _, facts in described(folders[1])
        if (header := facts["Envelope"]["WARC-Header-Metadata"])["WARC-Type"] == "response"
    }
    site = archived_crawl().site
    home = pages[f"{site}/"]
    assert home["Response-Message"] == {"Status": "200", "Version": "HTTP/1.1", "Reason": "OK"}
    assert home["Headers"]["Content-Type"] == "text/html"
    assert home["HTML-Metadata"]["Head"]["Title"] == "Tidewater Library"
    assert {"path": "A@/href", "url": "/about.html", "text": "About us"} in home["HTML-Metadata"][
        "Links"
    ]
    french = pages[f"{site}/fr.html"]
    assert french["HTML-Metadata"]["Head"]["Title"] == "Bibliothèque des marées"  # in ISO-8859-1
    assert "HTML-Metadata" not in pages[f"{site}/archive.bin"]
