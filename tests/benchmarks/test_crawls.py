"""The benchmark of whole crawls: its web, what it counts, small crawls by those that are here."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import socket
import ssl
import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest

from tests.benchmarks.crawls import samples
from tests.benchmarks.crawls.__main__ import Run, by_step, compared, main, one_run, reached
from tests.benchmarks.crawls.crawlers import CRAWLERS, Crawler, Work, measure
from tests.benchmarks.crawls.web import RealWeb, Web, title
from tests.benchmarks.pageserver import certificates, free_port, serving


def links(body: bytes) -> list[str]:
    return re.findall(r'href="(.*?)"', body.decode())


@pytest.mark.smoke
@pytest.mark.parametrize(("pages", "levels"), [(1, 1), (2, 2), (9, 2), (10, 3), (300, 4)])
def test_one_seed_leads_to_every_page_in_as_many_rounds_as_there_are_levels(
    pages: int, levels: int
) -> None:
    web = Web(pages, 7, 80)
    bodies = dict(zip(map(web.url, range(pages)), web.bodies(), strict=True))
    depth = {web.url(0): 1}
    queue = deque(depth)
    while queue:
        url = queue.popleft()
        for link in links(bodies[url]):
            if link not in depth:
                depth[link] = depth[url] + 1
                queue.append(link)
    assert depth.keys() == bodies.keys() and max(depth.values()) == web.levels == levels


PAGE = """<!doctype html><html><head><base href="http://b.org/"><meta http-equiv="refresh"
content="1;url=/x"><link rel="stylesheet" href="//cdn.example.com/a/style.css"></head>
<!-- <body> --><body class="p" data-x='1'>%s<a rel="nofollow" href="https://www.example.com/a?b=1">x</a>
<a href="../y">y</a><a href="#top">t</a><a href="mailto:a@b.org">m</a><img src="/logo.png"><script>
var u = "https://api.example.com/v1";</script></body></html>"""


def test_real_pages_lead_to_one_another_and_nowhere_else(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number:02}.html").write_text(PAGE.replace("%s", str(number)))
    (tmp_path / "large.html").write_bytes(bytes(1 << 20))
    web = RealWeb.of(tmp_path, 5, 8080, "https")
    urls = [web.url(number) for number in range(web.pages)]
    bodies = [body.decode() for body in web.bodies()]
    assert (web.pages, web.levels, web.hosts) == (12, 3, 5)
    for number, body in enumerate(bodies):
        assert f"<title>{title(number)}</title>" in body and f">{number}<" in body
        assert not re.search(r"nofollow|<base|refresh\b|(?:example|b)\.(?:com|org)/", body, re.I)
        found = [link for link in links(body.encode()) if link.startswith("https")]
        assert {link for link in found if not link.endswith(".gif")} <= {*urls}
        below = range(8 * number + 1, min(8 * number + 9, 12))
        assert {urls[page] for page in below} <= {*found}
    assert bodies == [body.decode() for body in web.bodies()]


def test_tls_with_a_certificate_for_each_host(tmp_path: Path) -> None:
    if not shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"):
        pytest.skip("nginx is not installed")
    web = Web(4, 2, free_port(), "https")
    made, trusted = certificates(map(web.address, range(2)), tmp_path / "certificates")
    context = ssl.create_default_context(cafile=trusted)
    context.set_alpn_protocols(["h2"])
    with serving(web.bodies(), tmp_path / "site", web.port, made):
        for host in range(2):
            address = web.address(host)
            with (
                socket.create_connection((address, web.port)) as raw,
                context.wrap_socket(raw, server_hostname=address) as wrapped,
            ):
                assert (wrapped.version(), wrapped.selected_alpn_protocol()) == ("TLSv1.3", "h2")


REPORT = """
# Overhead  Shared Object   Symbol
    20.00%  libpython3.11.so.1.0             [.] _PyEval_EvalFrameDefault   -      -
    10.00%  lexbor.cpython-311-x86_64.so     [.] lxb_html_tokenizer_state_data
     5.50%  [kernel.kallsyms]                [k] _copy_to_iter                -      -
     4.50%  [kernel.kallsyms]                [k] clear_page_erms
     3.00%  libcrypto.so.3                   [.] ossl_md5_block_asm_data_order
     2.00%  libcrypto.so.3                   [.] aes_gcm_enc
     1.00%  libc.so.6                        [.] __memmove_avx512_unaligned_erms
     0.50%  isal_zlib.cpython-311.so         [.] isal_deflate_body_04
"""


def test_samples_fall_into_parts() -> None:
    assert samples.parts_of(REPORT.splitlines()) == {
        "Python": 20.0,
        "tree": 10.0,
        "kernel": 10.0,
        "hashes": 3.0,
        "TLS": 2.0,
        "C library": 1.0,
        "deflate": 0.5,
    }
    text = samples.report(samples.parts_of(REPORT.splitlines()), 4.65, 1000)
    assert "| Python | 43.0 | 2.00 |" in text


def test_pages_are_as_large_as_said_and_none_is_like_another() -> None:
    bodies = list(Web(400, 100, 80).bodies())
    assert len(set(bodies)) == 400 and bodies == list(Web(400, 100, 80).bodies())
    assert sum(map(len, bodies)) / 400 == pytest.approx(15_000, rel=0.05)
    assert f"<title>{title(7)}</title>".encode() in bodies[7]
    assert Web(20_000, 100, 80).levels == 6
    assert len({Web(20_000, 100, 80).url(page).split("/")[2] for page in range(20_000)}) == 100


def run(crawler: str, **other: object) -> Run:
    values = {"seconds": 10.0, "cpu": 5.0, "server_cpu": 1.0, "peak_bytes": 10**8}
    return Run(crawler, **{**values, "stored": 20_000, "pages": 20_000, "steps": {}, **other})  # type: ignore[arg-type]


def test_the_table_shows_who_fetched_too_little_and_who_is_not_here() -> None:
    runs = [run("minutch", steps={"fetch": (2.0, 4.0)}), run("colly", pages=19_999, stored=30_000)]
    text = compared(runs, {"nutch": "no java"}, Web(20_000, 100, 80))
    assert (
        "| minutch crawl, all steps | 5.0 | 10.0 | 20,000 | 20,000 | 0.25 | 2,000 | 100 MB | 1.0 |"
        in text
    )
    assert "| colly (Go) | 5.0 | 10.0 | ONLY 19,999 | 30,000 |" in text
    assert "- Apache Nutch bin/crawl is not here: no java" in text
    assert "| fetch | 2.00 | 4.00 | 0.100 |" in by_step(runs) and not by_step(runs[1:])


def test_figures_to_be_reached() -> None:
    assert reached([run("minutch")]).count(" yes |") == 2
    assert reached([run("minutch", cpu=17.0, seconds=16.0)]).count(" NO |") == 2
    assert not reached([run("colly")])


@pytest.mark.parametrize("name", ["scrapy", "crawlee"])
def test_a_peer_stores_every_page_once(tmp_path: Path, name: str) -> None:
    if not importlib.util.find_spec(name):
        pytest.skip(f"{name} is not installed")
    crawler = next(one for one in CRAWLERS if one.name == name)
    web = Web(30, 4, free_port())
    with serving(web.bodies(), tmp_path / "site", web.port):
        work = Work(tmp_path / "run", web.url(0), 4)
        cost, stored, pages = measure(crawler, Path(sys.executable), work)
    assert stored == pages == 30
    assert cost.cpu_seconds > 0 and cost.tree_bytes >= cost.private_bytes > 0


@pytest.mark.slow  # a whole crawl
def test_minutch_stores_every_page_once_and_says_what_its_steps_took(tmp_path: Path) -> None:
    crawler = next(one for one in CRAWLERS if one.name == "minutch")
    web = Web(9, 2, free_port())
    with serving(web.bodies(), tmp_path / "site", web.port) as server:
        work = Work(tmp_path / "run", web.url(0), 4)
        found = one_run(crawler, crawler.build(tmp_path), work, server)
    assert found.pages == found.stored == 9 and found.peak_bytes > 0
    named = {"inject", "generate", "fetch", "updatedb", "invertlinks", "dedup"}
    assert named <= found.steps.keys()
    assert 0.6 * found.cpu < sum(cpu for cpu, _ in found.steps.values()) < found.cpu + 0.1


def test_who_is_not_here_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no go, cargo or java in it
    monkeypatch.delenv("NUTCH_HOME", raising=False)
    given = ["--pages", "2", "--keep", str(tmp_path)]
    assert main([*given, "--only", "colly", "spider", "nutch"]) == 0
    out = capsys.readouterr().out
    assert "- colly (Go) is not here: no go on this machine" in out
    assert "- spider (Rust) is not here: no cargo on this machine" in out
    assert "- Apache Nutch bin/crawl is not here: " in out
    found = json.loads(out.splitlines()[-1])
    assert found["crawls"] == {} and found["not here"].keys() == {"colly", "spider", "nutch"}


def test_every_crawler_has_a_name_of_its_own() -> None:
    assert len({crawler.name for crawler in CRAWLERS}) == len(CRAWLERS)
    assert all(isinstance(crawler, Crawler) for crawler in CRAWLERS)


_FROM_AFAR = """
import socket, sys, time
from tests.benchmarks.crawls import distance
from tests.benchmarks.measure import Failed
try:
    far = distance.enter_servers()
except Failed as exc:
    sys.exit(f"skip: {exc}")
with socket.create_server(("127.0.3.4", 0)) as server, distance.enter_clients(far, 0.03):
    began = time.monotonic()
    with socket.create_connection(server.getsockname()) as near, server.accept()[0] as there:
        print(time.monotonic() - began)
        near.sendall(bytes(range(256)) * 100)
        assert there.makefile("rb").read(25_600) == bytes(range(256)) * 100
        print(time.monotonic() - began)
"""


def test_from_afar_a_round_trip_takes_as_long_as_said() -> None:
    words = [sys.executable, "-c", _FROM_AFAR]
    found = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    if found.stderr.startswith("skip: "):
        pytest.skip(found.stderr.removeprefix("skip: "))
    connected, read = map(float, found.stdout.split())
    assert connected >= 0.06 and connected + 0.03 <= read
