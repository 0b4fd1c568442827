"""export wacz: a package whose parts have the digests that it says, and the list of pages."""

from __future__ import annotations

import gzip
import json
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from minutch import jobs
from minutch.conf import Configuration
from tests.support.archived import archived_crawl


def packed(out: Path, *more: object) -> zipfile.ZipFile:
    jobs.export(
        "wacz", archived_crawl().folder, out, "-prefix", "x", *more, conf=Configuration.load([])
    )
    return zipfile.ZipFile(out)


def test_the_parts_are_what_the_package_says(tmp_path: Path) -> None:
    with packed(tmp_path / "c.wacz", "-size", 6000, "-title", "The library") as package:
        described = json.loads(package.read("datapackage.json"))
        resources = described["resources"]
        for resource in resources:
            data = package.read(resource["path"])
            assert resource["hash"] == f"sha256:{sha256(data).hexdigest()}"
            assert resource["bytes"] == len(data)
            assert resource["name"] == Path(resource["path"]).name
        named = {resource["path"] for resource in resources}
        assert named == set(package.namelist()) - {"datapackage.json", "datapackage-digest.json"}
        digest = json.loads(package.read("datapackage-digest.json"))
        assert digest["hash"] == f"sha256:{sha256(package.read('datapackage.json')).hexdigest()}"
        archives = [entry for entry in package.infolist() if entry.filename.startswith("archive/")]
        assert len(archives) > 1
        assert all(entry.compress_type == zipfile.ZIP_STORED for entry in archives)
    assert (described["wacz_version"], described["title"]) == ("1.1.1", "The library")
    assert described["mainPageUrl"].startswith(archived_crawl().site)


def test_the_archives_and_the_index_are_those_of_export_warc(tmp_path: Path) -> None:
    conf = Configuration.load([])
    jobs.export(
        "warc", archived_crawl().folder, tmp_path / "warc", "-prefix", "x", "-cdxj", conf=conf
    )
    with packed(tmp_path / "c.wacz") as package:
        assert (
            package.read("archive/x-00000.warc.gz")
            == (tmp_path / "warc/x-00000.warc.gz").read_bytes()
        )
        blocks = package.read("indexes/index.cdx.gz")
        assert gzip.decompress(blocks) == (tmp_path / "warc/index.cdxj").read_bytes()
        meta, *lines = package.read("indexes/index.idx").decode().splitlines()
    assert json.loads(meta.removeprefix("!meta 0 ")) == {
        "format": "cdxj-gzip-1.0",
        "filename": "index.cdx.gz",
    }
    for line in lines:
        key, time, text = line.split(" ", 2)
        place = json.loads(text)
        block = blocks[place["offset"] : place["offset"] + place["length"]]
        assert place["digest"] == f"sha256:{sha256(block).hexdigest()}"
        assert gzip.decompress(block).decode().startswith(f"{key} {time} ")


@pytest.mark.parametrize("with_text", [False, True])
def test_the_list_of_pages(tmp_path: Path, with_text: bool) -> None:
    with packed(tmp_path / "c.wacz", *["-text"] * with_text) as package:
        head, *pages = map(json.loads, package.read("pages/pages.jsonl").decode().splitlines())
    assert head == {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"} | (
        {"hasText": True} if with_text else {}
    )
    titles = {page["url"]: page["title"] for page in pages}
    assert titles[f"{archived_crawl().site}/fr.html"] == "Bibliothèque des marées"
    assert f"{archived_crawl().site}/archive.bin" not in titles
    assert len({page["id"] for page in pages}) == len(pages)
    assert all(("text" in page) is with_text for page in pages)


def test_the_same_twice(tmp_path: Path) -> None:
    packed(tmp_path / "one.wacz").close()
    packed(tmp_path / "two.wacz").close()
    assert (tmp_path / "one.wacz").read_bytes() == (tmp_path / "two.wacz").read_bytes()
