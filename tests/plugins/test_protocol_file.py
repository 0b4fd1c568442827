"""protocol-file: files, listings, symbolic links, what is not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.plugin.points import ProtocolOutput
from minutch.records.crawldatum import CrawlDatum
from plugins.lib_http.exchange import format_date
from plugins.protocol_file.file import File, listing
from tests.support.validated import holding

TIME_NS = 1_735_726_830_123_000_000


def touch(path: Path, content: bytes = b"x") -> Path:
    path.write_bytes(content)
    os.utime(path, ns=(TIME_NS, TIME_NS))
    return path


async def get(url: str, datum: CrawlDatum | None = None, **values: str) -> ProtocolOutput:
    conf = Configuration().with_values(
        {name.replace("__", "."): value for name, value in values.items()}
    )
    return await File(conf, {}).get_protocol_output(url, datum or CrawlDatum())


async def test_a_file(tmp_path: Path) -> None:
    path = touch(tmp_path / "page.html", b"<p>")
    output = await get(f"file:{path}")
    assert str(output.status) == "success(1), lastModified=1735726830000"
    assert output.content is not None and output.content.content == b"<p>"
    assert output.content.content_type == "text/html"
    assert output.content.metadata == {
        "Last-Modified": ["Wed, 01 Jan 2025 10:20:30 GMT"],
        "Content-Length": ["3"],
        "Content-Type": ["text/html"],
    }


async def test_names_are_decoded(tmp_path: Path) -> None:
    touch(tmp_path / "a b%c.txt", b"1")
    touch(tmp_path / "d+e.txt", b"2")
    touch(tmp_path / "ü.txt", b"3")
    for name, content in (
        ("a%20b%25c.txt", b"1"),
        ("a+b%25c.txt", b"1"),
        ("d+e.txt", b"2"),
        ("%C3%BC.txt", b"3"),
    ):
        output = await get(f"file:{tmp_path}/{name}?query")
        assert output.content is not None and output.content.content == content


async def test_content_limit(tmp_path: Path) -> None:
    path = touch(tmp_path / "big.bin", b"x" * 100)
    output = await get(f"file:{path}", file__content__limit="10")
    assert output.content is not None and output.content.content == b"x" * 10
    assert output.content.metadata["Content-Length"] == ["100"]
    assert output.content.metadata["http.content.truncated"] == ["true"]
    whole = await get(f"file:{path}", file__content__limit="-1")
    assert whole.content is not None and len(whole.content.content) == 100
    assert whole.content.content_type == "application/octet-stream"


async def test_a_directory(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    touch(tmp_path / "b.txt", b"12345")
    touch(tmp_path / "a & 'b'#.txt")
    os.mkfifo(tmp_path / "pipe")
    os.utime(tmp_path / "sub", ns=(TIME_NS, TIME_NS))
    output = await get(f"file:{tmp_path}")
    assert output.content is not None and output.content.content_type == "text/html"
    assert (
        output.content.content.decode()
        == f"<html><head><title>Index of {tmp_path}</title></head>\n<body><h1>Index of"
        f" {tmp_path}</h1><pre>\n<a href='../'>../</a>\t-\t-\t-\n<a href='a %26"
        " %27b%27%23.txt'>a &amp; 'b'#.txt</a>\tWed, 01 Jan 2025 10:20:30 GMT\t1\n<a"
        " href='b.txt'>b.txt</a>\tWed, 01 Jan 2025 10:20:30 GMT\t5\n<a"
        " href='sub/'>sub/</a>\tWed, 01 Jan 2025 10:20:30 GMT\t-\n</pre></body></html>\n"
    )
    alone = await get(f"file:{tmp_path}", file__crawl__parent="false")
    assert alone.content is not None and b"../" not in alone.content.content
    assert "../" not in listing(Path("/"), parent=False)


async def test_not_modified(tmp_path: Path) -> None:
    """The date of the copy counts, not that of the entry: an older file is another one, too."""
    path = touch(tmp_path / "x")
    url, date = f"file:{path}", format_date(TIME_NS // 1_000_000)
    assert (
        str((await get(url, holding(url, date=date))).status) == "notmodified(21), lastModified=0"
    )
    for other in (-1000, 1000):
        datum = holding(url, date=format_date(TIME_NS // 1_000_000 + other))
        assert (await get(url, datum)).status.is_success
    assert (await get(url, CrawlDatum(modified_time=TIME_NS))).status.is_success
    folder = f"file:{tmp_path}/"
    date = format_date(tmp_path.stat().st_mtime_ns // 1_000_000)
    assert (await get(folder, holding(folder, date=date))).status.is_success


async def test_what_is_not_there(tmp_path: Path) -> None:
    assert str((await get(f"file:{tmp_path}/nothing")).status) == "notfound(14), lastModified=0"
    assert "MalformedURLException" in str((await get("no url")).status)
    assert "MalformedURLException" in str((await get("http://a/")).status)
    os.mkfifo(tmp_path / "pipe")
    assert "File Error: 500" in str((await get(f"file:{tmp_path}/pipe")).status)


async def test_not_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = touch(tmp_path / "x")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert str((await get(f"file:{path}")).status) == "access_denied(17), lastModified=0"


async def test_symbolic_links(tmp_path: Path) -> None:
    target = touch(tmp_path / "tä rget.txt", b"there")
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "dirlink").symlink_to(tmp_path, target_is_directory=True)
    moved = await get(f"file:{tmp_path}/link")
    assert str(moved.status) == f"moved(12), lastModified=0: file:{tmp_path}/tä%20rget.txt"
    assert (
        moved.content is not None
        and moved.content.metadata.get("Location") == f"file:{tmp_path}/tä%20rget.txt"
    )
    assert (await get(f"file:{tmp_path}/dirlink")).status.message == f"file:{tmp_path}/"
    read = await get(f"file:{tmp_path}/link", file__crawl__redirect_noncanonical="false")
    assert read.status.is_success and read.content is not None and read.content.content == b"there"
    dots = await get(f"file:{tmp_path}/x/../link")
    assert dots.status.code in (12, 14)


async def test_files_have_no_robots_txt() -> None:
    rules = await File(Configuration(), {}).get_robot_rules("file:/x", CrawlDatum(), None)
    assert rules.is_allowed("file:/x")
