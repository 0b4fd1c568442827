"""Serves pages on every loopback address: nginx where it is installed, else a server of ours.

    python -m tests.benchmarks.pageserver FOLDER PORT          (ours)

/docs/<copy>/<page>.html is a page, whatever the copy; everything else, robots.txt too, is 404.
Connections are kept.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from tests.benchmarks.measure import Failed

PROJECT: Final = Path(__file__).parents[2]
COPIES: Final = 100
"""How many URLs lead to one page at most."""
_NGINX: Final = """
daemon off;
master_process off;
pid nginx.pid;
error_log nginx-error.log;
worker_rlimit_nofile 65536;
events {{ worker_connections 16384; }}
http {{
    access_log off;
    types {{ text/html html; }}
    charset utf-8;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    keepalive_timeout 600;
    open_file_cache max=5000 inactive=600s;
    open_file_cache_valid 600s;
    {servers}
}}
"""
_SERVER: Final = """
    server {{
        listen {listen} backlog=4096;
        {tls}
        root {folder};
    }}
"""
_TLS: Final = """
        ssl_certificate {file};
        ssl_certificate_key {file};
        ssl_protocols TLSv1.3;
        ssl_session_cache shared:sessions:20m;
"""
_HEADERS: Final = (
    b"HTTP/1.1 200 OK\r\nServer: pages\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\n"
    b"Content-Type: text/html; charset=utf-8\r\nLast-Modified: Wed, 01 Jan 2025 10:20:30 GMT\r\n"
    b'ETag: "%d"\r\nAccept-Ranges: bytes\r\nContent-Length: %d\r\n\r\n'
)
_MISSING: Final = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def page_url(host: str, port: int, number: int, pages: int, scheme: str = "http") -> str:
    """URL number `number` of a site of `pages` pages."""
    return f"{scheme}://{host}:{port}/docs/{number // pages}/{number % pages:05}.html"


class Serving(NamedTuple):
    """A server that runs."""

    port: int
    name: str
    pid: int


def free_port() -> int:
    """A port that nobody uses, for pages that link to one another by host and port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def certificates(addresses: Iterable[str], folder: Path) -> tuple[dict[str, Path], Path]:
    """Makes a certificate with its key for each address, and the authority that all are of."""
    import trustme

    folder.mkdir(parents=True)
    authority, trusted = trustme.CA(), folder / "ca.pem"
    authority.cert_pem.write_to_path(trusted)
    files = {}
    for address in addresses:
        files[address] = folder / f"{address}.pem"
        authority.issue_cert(address).private_key_and_cert_chain_pem.write_to_path(files[address])
    return files, trusted


def _servers(folder: Path, port: int, certificates: Mapping[str, Path]) -> str:
    if not certificates:
        return _SERVER.format(listen=f"0.0.0.0:{port}", tls="", folder=folder)
    return "".join(
        _SERVER.format(
            listen=f"{address}:{port} ssl http2", tls=_TLS.format(file=file), folder=folder
        )
        for address, file in certificates.items()
    )


@contextmanager
def serving(
    pages: Iterable[bytes],
    folder: Path,
    port: int | None = None,
    certificates: Mapping[str, Path] = MappingProxyType({}),
) -> Iterator[Serving]:
    """Serve `pages` from files below `folder` for a while, at any port if none is given; by TLS
    1.3, in HTTP/1.1 and 2, on the addresses that have certificates. Raises Failed where that takes
    nginx.
    """
    files = folder / "pages"
    files.mkdir(parents=True)
    for number, page in enumerate(pages):
        (files / f"{number:05}.html").write_bytes(page)
    docs = folder / "docs"
    docs.mkdir()
    for copy in range(COPIES):
        (docs / str(copy)).symlink_to(files)
    port = port or free_port()
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if nginx is None and certificates:
        raise Failed("TLS is served by nginx, which is not installed")
    if nginx is None:
        command = [sys.executable, "-m", __name__, str(files), str(port)]
    else:
        settings = folder / "nginx.conf"
        servers = _servers(folder, port, certificates)
        settings.write_text(_NGINX.format(folder=folder, servers=servers), encoding="utf-8")
        command = [
            nginx,
            "-p",
            str(folder),
            "-e",
            str(folder / "nginx-error.log"),
            "-c",
            str(settings),
        ]
    with subprocess.Popen(command, cwd=PROJECT) as process:
        try:
            _wait(process, next(iter(certificates), "127.0.0.1"), port)
            yield Serving(port, "our own server" if nginx is None else "nginx", process.pid)
        finally:
            process.kill()


def _wait(process: subprocess.Popen[bytes], host: str, port: int) -> None:
    """Until the server answers."""
    while process.poll() is None:
        try:
            socket.create_connection((host, port), timeout=5).close()
            return
        except ConnectionRefusedError:
            continue
    raise Failed(f"the page server ended with exit code {process.returncode}")


class Pages(asyncio.Protocol):
    """One connection."""

    def __init__(self, answers: list[bytes]) -> None:
        self.answers = answers

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        for request in data.split(b"\r\n\r\n")[:-1]:
            path = request.split(b" ", 2)[1].split(b"/")
            number = path[-1].removesuffix(b".html")
            answer = self.answers[int(number)] if len(path) == 4 and number.isdigit() else _MISSING
            self.transport.write(answer)  # type: ignore[attr-defined]


async def serve(folder: Path, port: int) -> None:
    """Serve until the process is ended."""
    pages = [path.read_bytes() for path in sorted(folder.glob("*.html"))]
    answers = [_HEADERS % (number, len(page)) + page for number, page in enumerate(pages)]
    server = await asyncio.get_running_loop().create_server(
        lambda: Pages(answers), "0.0.0.0", port, backlog=4096
    )
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
