"""protocol-ftp against a real server, and against some that mean no good."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from minutch.hadoop.formats.writables import Text
from minutch.plugin.points import ProtocolOutput
from minutch.records import protocol as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import RESPONSE_CODE_KEY, TRUNCATED_KEY
from minutch.records.protocol import Content
from plugins.lib_http.exchange import format_date
from plugins.protocol_ftp.ftp import Ftp
from plugins.protocol_ftp.ftpsession import FtpEntry, facts, listed, page, parse_time
from tests.support.ftpserver import DataPort, FtpServer, ScriptedFtp
from tests.support.segments import conf_for, fetch_segment, fetched, make_segment
from tests.support.segments import contents as contents_of
from tests.support.validated import holding

MODIFIED = 1_700_000_000


@asynccontextmanager
async def client(**values: str) -> AsyncIterator[Ftp]:
    ftp = Ftp(conf_for(**values), {})
    try:
        yield ftp
    finally:
        await ftp.close()


async def fetch(url: str, datum: CrawlDatum | None = None, **values: str) -> ProtocolOutput:
    async with client(**values) as ftp:
        return await ftp.get_protocol_output(url, datum or CrawlDatum())


def body(output: ProtocolOutput) -> bytes:
    assert output.content is not None, output.status
    return output.content.content


def hang_up(client: socket.socket) -> None:
    client.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "ftp"
    (root / "dir" / "inner").mkdir(parents=True)
    (root / "a b+ü.txt").write_bytes(b"hello\r\n")
    (root / "page.html").write_bytes(b"<a href=dir/>d</a>")
    (root / "dir" / "it's <1>: x").write_bytes(b"12345")
    (root / "robots.txt").write_text("User-agent: *\nDisallow: /dir/inner\n")
    for path in root.rglob("*"):
        os.utime(path, (MODIFIED, MODIFIED))
    return root


@pytest.fixture
def server(folder: Path) -> Iterator[FtpServer]:
    with FtpServer(folder) as server:
        yield server


class TestFiles:
    async def test_a_file(self, server: FtpServer) -> None:
        datum = CrawlDatum()
        output = await fetch(server.url("/a%20b+%C3%BC.txt"), datum, store__ip__address="true")
        assert body(output) == b"hello\r\n"
        assert output.status.code == codes.SUCCESS
        assert output.status.last_modified == MODIFIED * 1000
        assert output.content is not None
        assert dict(output.content.metadata) == {
            "Last-Modified": ["Tue, 14 Nov 2023 22:13:20 GMT"],
            "Content-Length": ["7"],
            "Content-Type": ["text/plain"],
            "_ip_": ["127.0.0.1"],
        }
        assert datum.metadata[Text(RESPONSE_CODE_KEY)] == Text("200")
        assert server.said[:3] == ["USER anonymous", "PASS anonymous@example.com", "TYPE I"]

    @pytest.mark.parametrize(
        ("other", "code"), [(0, codes.NOTMODIFIED), (1, codes.SUCCESS), (-1, codes.SUCCESS)]
    )
    async def test_only_another_version(self, server: FtpServer, other: int, code: int) -> None:
        url = server.url("/page.html")
        datum = holding(url, date=format_date((MODIFIED + other) * 1000))
        assert (await fetch(url, datum)).status.code == code

    async def test_content_limit(self, server: FtpServer) -> None:
        for limit, expected in (
            ("5", b"hello"),
            ("0", b""),
            ("7", b"hello\r\n"),
            ("-1", b"hello\r\n"),
        ):
            output = await fetch(server.url("/a%20b+%C3%BC.txt"), ftp__content__limit=limit)
            assert body(output) == expected
            assert output.content is not None
            cut = output.content.metadata.get(TRUNCATED_KEY)
            assert cut == (None if len(expected) == 7 else "true")
            assert output.content.metadata.get("Content-Length") == "7"

    @pytest.mark.parametrize("path", ["/none.txt", "/none/", "/dir/%0d%0aDELE%20x", "/a%00"])
    async def test_not_there(self, server: FtpServer, path: str) -> None:
        assert (await fetch(server.url(path))).status.code == codes.NOTFOUND
        assert not any(line.startswith("DELE") for line in server.said)

    async def test_a_directory_without_its_slash(self, server: FtpServer) -> None:
        output = await fetch(server.url("/dir"))
        assert (output.status.code, output.status.args) == (codes.MOVED, [server.url("/dir/")])

    async def test_login(self, folder: Path) -> None:
        with FtpServer(folder, anonymous=False) as server:
            assert (await fetch(server.url("/page.html"))).status.code == codes.ACCESS_DENIED
            values = {"ftp__username": "alice", "ftp__password": "secret"}
            assert (await fetch(server.url("/page.html"), **values)).status.code == codes.SUCCESS

    async def test_a_server_without_newer_commands(self, folder: Path) -> None:
        with FtpServer(folder, without=("MDTM", "SIZE", "FEAT", "MLSD", "MLST")) as server:
            output = await fetch(server.url("/page.html"))
            assert body(output) == b"<a href=dir/>d</a>"
            assert abs(output.status.last_modified / 1000 - MODIFIED) < 86_400  # LIST has days
            assert b"<a href='inner/'>inner/</a>" in body(await fetch(server.url("/dir/")))


class TestDirectories:
    async def test_a_page_of_links(self, server: FtpServer) -> None:
        output = await fetch(server.url("/dir/"))
        assert output.content is not None
        assert output.content.content_type == "text/html"
        text = body(output).decode()
        assert text.startswith(
            "<html><head><title>Index of /dir/</title></head>\n<body><h1>Index of /dir/</h1><pre>\n"
        )
        assert "<a href='../'>../</a>\t-\t-\t-\n" in text
        assert "<a href='inner/'>inner/</a>\tTue, 14 Nov 2023 22:13:20 GMT\t-\n" in text
        assert (
            "<a href='./it%27s %3C1%3E: x'>it's &lt;1&gt;: x</a>\tTue, 14 Nov 2023 22:13:20"
            " GMT\t5\n" in text
        )

    async def test_the_root_has_no_parent(self, server: FtpServer) -> None:
        text = body(await fetch(server.url()))
        assert b"../" not in text
        assert "<a href='a b+%C3%BC.txt'>a b+ü.txt</a>".encode() in text

    async def test_cut_at_a_line(self, server: FtpServer, folder: Path) -> None:
        for number in range(20):
            (folder / "dir" / f"f{number:02}").touch()
        output = await fetch(server.url("/dir/"), ftp__content__limit="500")
        assert output.content is not None
        assert output.content.metadata.get(TRUNCATED_KEY) == "true"
        assert 2 < body(output).count(b"</a>") < 20

    def test_listings(self) -> None:
        unix = [
            "total 3",
            "drwxr-xr-x 2 a b 4096 Jan 21 2020 a dir",
            "-rw-r--r-- 1 a b 12 Jan 21 2020 x",
            "junk",
            "",
        ]
        assert list(listed(unix)) == [
            FtpEntry("a dir", True, 4096, 1_579_564_800_000),
            FtpEntry("x", False, 12, 1_579_564_800_000),
        ]
        assert list(listed(["lrwxrwxrwx 1 a b 3 Jan 21 2020 ln -> x"])) == []
        dos = ["10-23-12  02:44PM       1024 a.txt", "10-23-12  02:44PM       <DIR> sub"]
        assert [(e.name, e.is_dir, e.size) for e in listed(dos)] == [
            ("a.txt", False, 1024),
            ("sub", True, 0),
        ]

    def test_facts(self) -> None:
        lines = [
            "Type=file;Size=12;Modify=20260101120000.123; a b",
            "type=cdir; .",
            "type=dir;modify=never; d",
            "type=file;size=x; n",
            "type=OS.unix=slink; s",
            "junk",
        ]
        assert list(facts(lines)) == [
            FtpEntry("a b", False, 12, 1_767_268_800_000),
            FtpEntry("d", True, 0, 0),
            FtpEntry("n", False, 0, 0),
        ]

    def test_names_that_no_file_can_have(self) -> None:
        names = ["../x", "/etc/passwd", "a\x1b[31m", "a/b", "..", "\x7f"]
        assert list(facts(f"type=file; {name}" for name in names)) == []
        assert list(listed(f"-rw-r--r-- 1 a b 12 Jan 21 2020 {name}" for name in names)) == []
        shown = page("/<x>/", [FtpEntry("javascript:alert(1)", False, 1, 0)])
        assert b"<a href='./javascript:alert(1)'>" in shown
        assert b"<x>" not in shown

    @pytest.mark.parametrize(
        "text", ["", "20261301000000", "20260132000000", "00000101000000", "2026"]
    )
    def test_no_times(self, text: str) -> None:
        assert parse_time(text) is None


class TestConnections:
    async def test_kept_for_the_next_url(self, server: FtpServer) -> None:
        for keep, connections in (("true", 1), ("false", 3)):
            server.connections = 0
            async with client(ftp__keep__connection=keep) as ftp:
                for path in ("/page.html", "/dir/", "/page.html"):
                    assert (
                        await ftp.get_protocol_output(server.url(path), CrawlDatum())
                    ).status.code == codes.SUCCESS
            assert server.connections == connections

    @pytest.mark.parametrize("name", ["ftp__timeout", "ftp__server__timeout"])
    async def test_not_for_longer_than_the_server_keeps_it(
        self, server: FtpServer, name: str
    ) -> None:
        values = {"ftp__keep__connection": "true", "ftp__timeout": "5000", name: "1000"}
        async with client(**values) as ftp:
            await ftp.get_protocol_output(server.url("/page.html"), CrawlDatum())
            key, (until, session) = ftp._kept.popitem()
            assert until <= time.monotonic() + 1.0
            ftp._kept[key] = (time.monotonic() - 0.1, session)
            await ftp.get_protocol_output(server.url("/page.html"), CrawlDatum())
        assert server.connections == 2

    async def test_one_that_the_server_has_closed_is_made_anew(self, server: FtpServer) -> None:
        async with client(ftp__keep__connection="true") as ftp:
            await ftp.get_protocol_output(server.url("/page.html"), CrawlDatum())
            for _, session in ftp._kept.values():
                assert session.sock is not None
                session.sock.shutdown(socket.SHUT_RDWR)
            assert body(await ftp.get_protocol_output(server.url("/page.html"), CrawlDatum()))

    async def test_the_dialogue_in_the_log(
        self, server: FtpServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level("INFO"):
            await fetch(
                server.url("/page.html"), ftp__follow__talk="true", ftp__password="mine@example.com"
            )
            said = [
                record.getMessage() for record in caplog.records if "ftp> " in record.getMessage()
            ]
            assert said[0] == "ftp> 220 ready"
            assert "ftp> RETR /page.html" in said
            assert "mine" not in caplog.text
            caplog.clear()
            await fetch(server.url("/page.html"))
            assert "ftp> " not in caplog.text

    async def test_inner_ftp_servers_are_not_connected_to(self, server: FtpServer) -> None:
        output = await fetch(server.url("/page.html"), http__filter__ipaddress__include="")
        assert output.status.code == codes.BLOCKED
        assert output.status.args == [
            "java.io.IOException: Forbidden connection to IP address 127.0.0.1"
        ]
        assert server.connections == 0

    async def test_nobody_there(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        output = await fetch(f"ftp://127.0.0.1:{port}/x")
        assert output.status.args == ["java.net.ConnectException: Connection refused"]
        assert "UnknownHostException" in str((await fetch("ftp://nohost.invalid/x")).status)


class TestRobots:
    async def test_they_count(self, server: FtpServer) -> None:
        stored: list[Content] = []
        async with client() as ftp:
            rules = await ftp.get_robot_rules(server.url("/dir/"), CrawlDatum(), stored)
            assert rules.is_allowed(server.url("/dir/"))
            assert not rules.is_allowed(server.url("/dir/inner/"))
            assert [page.url for page in stored] == [server.url("/robots.txt")]
            before = server.connections
            await ftp.get_robot_rules(server.url("/page.html"), CrawlDatum(), None)
            assert server.connections == before

    async def test_none_allow_everything(self, server: FtpServer, folder: Path) -> None:
        (folder / "robots.txt").unlink()
        async with client() as ftp:
            rules = await ftp.get_robot_rules(server.url("/dir/"), CrawlDatum(), None)
            assert rules.is_allowed(server.url("/dir/inner/"))

    async def test_a_server_that_does_not_answer_gives_no_leave(self) -> None:
        with ScriptedFtp({"": hang_up}) as server:
            async with client() as ftp:
                rules = await ftp.get_robot_rules(server.url("/x"), CrawlDatum(), None)
                assert not rules.is_allowed(server.url("/x"))


class TestHostileServers:
    """Whatever a server says, a fetch ends as a status, in time, and goes nowhere else."""

    async def test_data_comes_from_the_server_itself(self) -> None:
        data = DataPort(b"hello")
        with ScriptedFtp({"PASV": data.pasv("10,1,2,3"), "RETR": data.send}) as server:
            assert body(await fetch(server.url("/x"))) == b"hello"  # from the server itself

    @pytest.mark.parametrize(
        ("script", "said"),
        [
            ({"PASV": b"227 (127,0,0,1,0,22)"}, "data connection to port 22"),
            ({"PASV": b"227 (127,0,0,1,999,999)"}, "data connection to port"),
            ({"PASV": b"227 gibberish"}, "227"),
            ({"": b"gibberish"}, "gibberish"),
            ({"": b"220-" + b"a" * 9000}, "9"),
            ({"": hang_up}, "connection closed"),
            ({"USER": hang_up}, "connection closed"),
            ({"": b"421 too many"}, "421 too many"),
            ({"RETR": b"150 coming", "PASV": b"425 no"}, "425 no"),
        ],
    )
    async def test_nonsense(self, script: dict[str, bytes], said: str) -> None:
        with ScriptedFtp(script) as server:
            status = (await fetch(server.url("/x"), ftp__timeout="2000")).status
        assert status.code == codes.EXCEPTION
        assert said in str(status)

    async def test_ftp_replies_without_end(self) -> None:
        def flood(client: socket.socket) -> None:
            while True:
                client.sendall(b"220-more\r\n" * 1000)

        with ScriptedFtp({"": flood}) as server:
            assert "a reply of more than" in str((await fetch(server.url("/x"))).status)

    async def test_ftp_files_and_lists_without_end(self) -> None:
        line = b"type=file; name\r\n" * 1000
        data = DataPort(line, endless=True)
        script = {
            "PASV": data.pasv(),
            "RETR": data.send,
            "MLSD": data.send,
            "FEAT": b"211-x\r\n MLST\r\n211 end",
        }
        with ScriptedFtp({**script, "CWD": b"250 ok"}) as server:
            for path in ("/x", "/x/"):
                output = await fetch(server.url(path), ftp__content__limit="20000")
                assert output.content is not None
                assert output.content.metadata.get(TRUNCATED_KEY) == "true"
        assert len(output.content.content) < 200_000

    async def test_silence(self) -> None:
        with ScriptedFtp({"": lambda client: time.sleep(0.5)}) as server:
            status = (await fetch(server.url("/x"), ftp__timeout="100")).status
        assert "SocketTimeoutException" in str(status)

    async def test_a_byte_now_and_then(self) -> None:
        def drip(client: socket.socket) -> None:
            while True:
                client.sendall(b"2")
                time.sleep(0.02)

        with ScriptedFtp({"": drip}) as server:  # time enough to connect on a busy machine
            status = (await fetch(server.url("/x"), ftp__timeout="500")).status
        assert status.args == ["java.net.SocketTimeoutException: Read timed out"]


def test_a_fetch(server: FtpServer, tmp_path: Path) -> None:
    urls = [server.url(path) for path in ("/", "/page.html", "/dir", "/dir/inner/", "/none")]
    segment = make_segment(tmp_path, urls)
    conf = conf_for().with_values(
        {"plugin.includes": "protocol-ftp|urlnormalizer-pass|scoring-opic"}
    )
    fetch_segment(segment, conf)
    statuses = {
        url.partition(f":{server.port}")[2]: [d.status_name for d in found]
        for url, found in fetched(segment).items()
    }
    assert statuses == {
        "/": ["fetch_success"],
        "/page.html": ["fetch_success"],
        "/dir": ["fetch_redir_perm"],
        "/dir/": ["linked"],
        "/dir/inner/": ["fetch_gone"],
        "/none": ["fetch_gone"],
    }
    assert b"page.html" in contents_of(segment)[server.url("/")].content
