"""protocol-selenium, -htmlunit and -interactiveselenium with a real browser and real servers on
loopback.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from minutch.errors import ConfigError
from minutch.hadoop.formats.writables import Text
from minutch.plugin.points import ProtocolOutput
from minutch.records import protocol as codes
from minutch.records.crawldatum import CrawlDatum
from plugins.lib_selenium import base
from plugins.lib_selenium.base import BrowserHttp
from plugins.lib_selenium.chromium import BrowserSettings, Chromium
from plugins.lib_selenium.driver import Driver
from plugins.protocol_htmlunit.http import Http as HtmlUnit
from plugins.protocol_interactiveselenium.http import Http as Interactive
from plugins.protocol_selenium.http import Http as Selenium
from tests.support.browsers import SmallWeb, needs_browser
from tests.support.golden import PROJECT
from tests.support.nameserver import NameServer
from tests.support.segments import conf_for

pytestmark = [pytest.mark.browser, needs_browser, pytest.mark.asyncio(loop_scope="module")]

STORY = """<!DOCTYPE html><html><head><title>A story</title><link rel="stylesheet" href="/s.css">
<script src="/a.js"></script></head><body><img src="/i.png"><div id="late"></div><script>
fetch("/late").then(r => r.text()).then(t => document.getElementById("late").textContent = t)
</script></body></html>"""
PAGES: dict[str, str | tuple[int, dict[str, str], str]] = {
    "/robots.txt": "User-agent: *\nDisallow: /private\n",
    "/story": STORY,
    "/a.js": "document.write('<p>by a script</p>')",
    "/s.css": "body { color: red }",
    "/late": "what came late",
    "/i.png": "no picture",
}


@pytest.fixture
def web() -> Iterator[SmallWeb]:
    with SmallWeb(dict(PAGES)) as web:
        yield web


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[Selenium]:
    """One browser for many tests, as for many pages."""
    protocol = Selenium(conf_for(), {})
    yield protocol
    await protocol.close()


async def get(protocol: BrowserHttp, url: str, datum: CrawlDatum | None = None) -> ProtocolOutput:
    return await protocol.get_protocol_output(url, datum or CrawlDatum())


async def alone(protocol: BrowserHttp, url: str) -> ProtocolOutput:
    try:
        return await get(protocol, url)
    finally:
        await protocol.close()


def text(output: ProtocolOutput) -> str:
    assert output.status.is_success, output.status
    assert output.content is not None
    return output.content.content.decode()


# -- a page ----------------------------------------------------------------------------------------


async def test_a_page_is_what_its_scripts_made_of_it(web: SmallWeb, shared: Selenium) -> None:
    datum = CrawlDatum()
    output = await get(shared, web.url("/story"), datum)
    assert "<p>by a script</p>" in text(output)
    assert '<div id="late">what came late</div>' in text(output)
    assert text(output).startswith("<!DOCTYPE html>")
    assert output.content is not None
    assert output.content.content_type == "text/html; charset=UTF-8"
    assert output.content.metadata.get("Content-Length") == str(
        len(STORY)
    )  # headers stay as they came
    assert str(datum.metadata[Text("nutch.protocol.code")]) == "200"
    assert web.paths.count("/story") == 1, "a page is fetched once"
    assert all(asked.headers["user-agent"] == shared.settings.user_agents[0] for asked in web.asked)


async def test_what_is_no_html_stands_as_it_came(web: SmallWeb, shared: Selenium) -> None:
    web.pages["/x.css"] = "p { color: blue }"
    web.pages["/gone"] = (410, {}, "<script>document.write('x')</script>")
    web.pages["/go"] = (301, {"Location": "/story"}, "")
    assert text(await get(shared, web.url("/x.css"))) == "p { color: blue }"
    assert (await get(shared, web.url("/gone"))).status.code == codes.GONE
    moved = (await get(shared, web.url("/go"))).status
    assert (moved.code, moved.message) == (codes.MOVED, web.url("/story"))
    assert web.paths == ["/x.css", "/gone", "/go"]


@pytest.mark.parametrize(
    "leads",
    [
        "<script>location.href = '/other'</script>",
        '<meta http-equiv="refresh" content="0; url=/other">',
    ],
)
async def test_where_a_page_leads_is_a_redirect_and_not_followed_here(
    web: SmallWeb, shared: Selenium, leads: str
) -> None:
    web.pages["/leads"] = leads
    status = (await get(shared, web.url("/leads"))).status
    assert (status.code, status.message) == (codes.TEMP_MOVED, web.url("/other"))
    assert web.paths == ["/leads"]


async def test_an_address_that_scripts_wrote_is_the_base(web: SmallWeb, shared: Selenium) -> None:
    web.pages["/app"] = "<script>history.pushState({}, '', '/app/view/1')</script>"
    output = await get(shared, web.url("/app"))
    assert output.content is not None
    assert (output.content.url, output.content.base) == (web.url("/app"), web.url("/app/view/1"))


async def test_a_script_without_end_is_ended(web: SmallWeb) -> None:
    web.pages["/busy"] = "<p>there</p><script>setTimeout(() => { while (true) {} }, 1)</script>"
    protocol = Selenium(conf_for(page__load__delay="1", htmlunit__javascript__timeout="300"), {})
    assert "<p>there</p>" in text(await alone(protocol, web.url("/busy")))


async def test_scripts_can_not_forge_the_reading(web: SmallWeb, shared: Selenium) -> None:
    web.pages["/forger"] = """<p>honest</p><script>
    Object.defineProperty(Element.prototype, "outerHTML", {get: () => "forged"});
    XMLSerializer.prototype.serializeToString = () => "forged"; String.prototype.slice = () => \
"forged";
    </script>"""
    assert "<p>honest</p>" in text(await get(shared, web.url("/forger")))


# -- what a page may load --------------------------------------------------------------------------


async def test_robots_txt_holds_for_what_a_page_loads(web: SmallWeb, shared: Selenium) -> None:
    web.pages["/private.js"] = "document.write('<p>private</p>')"
    web.pages["/to-private.js"] = (302, {"Location": "/private.js"}, "")
    web.pages["/page"] = (
        "<script src='/private.js'></script><script src='/to-private.js'></script><iframe"
        " src='/private'>"
    )
    assert "<p>private</p>" not in text(await get(shared, web.url("/page")))
    assert web.paths == ["/page", "/to-private.js"]


HOSTILE = """<link rel="stylesheet" href="http://{host}/s.css"><link rel="preconnect" \
href="http://{host}">
<link rel="prefetch" href="http://{host}/p"><link rel="icon" href="http://{host}/icon.png">
<iframe src="http://{host}/frame"></iframe><img src="http://{host}/i.png">\
<script src="/to-inner.js"></script>
<object data="http://{host}/object"></object><script>
fetch("http://{host}/fetch", {mode: "no-cors"}); fetch("http://{host}/post", {method: "POST", \
mode: "no-cors"});
navigator.sendBeacon("http://{host}/beacon"); new WebSocket("ws://{host}/socket"); \
new EventSource("http://{host}/es");
new Worker(URL.createObjectURL(new Blob(["fetch('http://{host}/worker', {mode: 'no-cors'})"])));
navigator.serviceWorker && navigator.serviceWorker.register("/sw.js").catch(() => 0);
window.open("http://{host}/window");
const line = new RTCPeerConnection({iceServers: [{urls: "stun:{host}"}]}); \
line.createDataChannel("x");
line.createOffer().then(offer => line.setLocalDescription(offer));
</script>"""


async def test_nothing_that_a_page_does_reaches_a_forbidden_address(web: SmallWeb) -> None:
    """No connection comes, by TCP or UDP, and none that lib-http did not make."""
    conf = conf_for(page__load__delay="2").with_values(
        {"http.filter.ipaddress.include": "127.0.0.1"}
    )
    with (
        socket.create_server(("127.0.0.2", 0)) as inner,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        host = f"127.0.0.2:{inner.getsockname()[1]}"
        datagrams.bind(("127.0.0.2", inner.getsockname()[1]))
        web.pages["/hostile"] = HOSTILE.replace("{host}", host)
        web.pages["/to-inner.js"] = (302, {"Location": f"http://{host}/redirected.js"}, "")
        web.pages["/sw.js"] = f"fetch('http://{host}/from-sw')"
        await alone(Selenium(conf, {}), web.url("/hostile"))
        for listener in (inner, datagrams):
            listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            inner.accept()
        with pytest.raises(BlockingIOError):
            datagrams.recv(1)
    assert "/to-inner.js" in web.paths


async def test_the_browser_asks_no_name_server_of_its_own(web: SmallWeb) -> None:
    """A name that points inside a moment later (DNS rebinding) leads nowhere else; the browser has
    no DNS at all.
    """
    with NameServer({"site.test": (300, ["127.0.0.1"])}) as dns:
        conf = conf_for(
            http__dns__servers=dns.address, http__dns__resolver="cares", page__load__delay="2"
        )
        conf = conf.with_values({"http.filter.ipaddress.include": "127.0.0.1"})
        web.pages["/rebinding"] = (
            STORY + "<script>fetch('http://other.test:{port}/x', {mode: 'no-cors'})</script>"
        )
        dns.names["other.test"] = (0, ["127.0.0.2"])
        output = await alone(Selenium(conf, {}), web.url("/rebinding", "site.test"))
        assert "what came late" in text(output)
        assert dns.questions["site.test"] == 1
        assert "/x" not in web.paths


async def test_cookies_stay_with_the_page_and_its_host(web: SmallWeb, shared: Selenium) -> None:
    web.pages["/sets"] = (
        200,
        {"Set-Cookie": "of=page; Path=/"},
        (
            "<script src='/mine.js'></script><script"
            " src='http://localhost:{port}/theirs.js'></script><script src='/last.js'></script>"
        ),
    )
    web.pages["/mine.js"] = (200, {"Set-Cookie": "of-script=1; Path=/"}, "")
    web.pages["/theirs.js"] = (200, {"Set-Cookie": "of-other=1; Path=/"}, "")
    web.pages["/last.js"] = ""
    await get(shared, web.url("/sets"))
    assert web.headers("/mine.js")["cookie"] == "of=page"
    assert "cookie" not in web.headers("/theirs.js")
    assert "of-other" not in web.headers("/last.js").get("cookie", "")
    await get(shared, web.url("/story"))
    assert "cookie" not in web.headers("/a.js"), "a page knows nothing of the one before"
    web.pages["/two"] = (
        "<script src='http://localhost:{port}/theirs.js'></script><script"
        " src='http://localhost:{port}/again.js'></script>"
    )
    await get(shared, web.url("/two"))
    assert "cookie" not in web.headers("/again.js")


async def test_only_reading_requests_are_made(web: SmallWeb, shared: Selenium) -> None:
    web.pages["/sends"] = (
        "<script>fetch('/post', {method: 'POST'}); fetch('/put', {method: 'PUT'})</script>"
    )
    await get(shared, web.url("/sends"))
    assert web.paths == ["/sends"]


# -- bounds ----------------------------------------------------------------------------------------


async def test_a_page_loads_no_more_than_it_may(web: SmallWeb) -> None:
    web.pages["/many"] = "".join(f"<script src='/n{number}.js'></script>" for number in range(20))
    few = Selenium(conf_for(minutch__browser__requests__max="5"), {})
    await alone(few, web.url("/many"))
    assert len(web.paths) == 6
    web.asked.clear()
    web.pages["/large"] = (
        "<script src='/large.js'></script><script>document.write(window.loaded)</script>"
    )
    web.pages["/large.js"] = "window.loaded = 'loaded';" + " " * 20_000
    assert "undefined" in text(
        await alone(Selenium(conf_for(minutch__browser__bytes__max="10k"), {}), web.url("/large"))
    )
    assert "loaded" in text(
        await alone(Selenium(conf_for(minutch__browser__bytes__max="64k"), {}), web.url("/large"))
    )


async def test_content_is_cut_at_the_limit(web: SmallWeb) -> None:
    web.pages["/grows"] = "<script>document.write('x'.repeat(100000))</script>"
    output = await alone(Selenium(conf_for(http__content__limit="5000"), {}), web.url("/grows"))
    assert len(text(output)) == 5000
    assert output.content is not None
    assert output.content.metadata.get("http.content.truncated") == "true"


async def test_a_browser_with_too_much_memory_is_ended_and_the_next_page_gets_another(
    web: SmallWeb, caplog: pytest.LogCaptureFixture
) -> None:
    protocol = Selenium(conf_for(minutch__browser__memory__max="1m", page__load__delay="2"), {})
    web.pages["/waits"] = "<script>setInterval(() => fetch('/late'), 50)</script>"
    try:
        status = (await get(protocol, web.url("/waits"))).status
        assert status.code == codes.EXCEPTION
        assert "minutch.browser.memory.max" in caplog.text
        protocol.browsing = protocol.browser._settings = BrowserSettings()
        assert "what came late" in text(await get(protocol, web.url("/story")))
    finally:
        await protocol.close()


async def test_so_many_pages_at_a_time(web: SmallWeb) -> None:
    """A second page is opened when the first is done where there is one place."""
    protocol = Selenium(conf_for(minutch__browser__pages="1"), {})
    web.pages["/a"] = "<script>setInterval(() => fetch('/a-loads'), 10)</script>"
    web.pages["/b"] = "<script src='/b-loads'></script>"
    try:
        await asyncio.gather(get(protocol, web.url("/a")), get(protocol, web.url("/b")))
    finally:
        await protocol.close()
    loads = [path for path in web.paths if path.endswith("-loads")]
    assert set(loads) == {"/a-loads", "/b-loads"}
    assert loads == sorted(loads) or loads == sorted(loads, reverse=True)


async def test_a_browser_that_ends_is_started_again(web: SmallWeb, shared: Selenium) -> None:
    await get(shared, web.url("/story"))
    running = shared.browser._running
    assert isinstance(running, Chromium)
    os.kill(running.pid, signal.SIGKILL)
    await asyncio.wait_for(running.connection.lost.wait(), 10)
    assert "what came late" in text(await get(shared, web.url("/story")))


CHILD = """
import asyncio
from plugins.lib_selenium.chromium import Chromium
from plugins.lib_selenium.chromium import BrowserSettings

async def main():
    browser = await Chromium.start(BrowserSettings())
    print(browser.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_the_browser_dies_with_its_parent() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    pid = int(child.stdout.readline())
    child.kill()
    child.wait()
    deadline = time.monotonic() + 10
    while _runs(pid):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            != "Z"
        )
    except OSError:
        return False


# -- properties ------------------------------------------------------------------------------------


async def test_html_unit_without_scripts_and_styles(web: SmallWeb) -> None:
    assert "what came late" in text(await alone(HtmlUnit(conf_for(), {}), web.url("/story")))
    assert sorted(set(web.paths)) == ["/a.js", "/late", "/story"]
    web.asked.clear()
    conf = conf_for(htmlunit__enable__javascript="false", htmlunit__enable__css="true")
    assert "what came late" not in text(await alone(HtmlUnit(conf, {}), web.url("/story")))
    assert sorted(set(web.paths)) == ["/s.css", "/story"]


async def test_pictures_and_styles_as_configured(web: SmallWeb, shared: Selenium) -> None:
    await get(shared, web.url("/story"))
    assert {"/i.png", "/s.css"} <= set(web.paths)
    web.asked.clear()
    conf = conf_for(selenium__firefox__load__image="2", selenium__firefox__load__stylesheet="2")
    await alone(Selenium(conf, {}), web.url("/story"))
    assert not {"/i.png", "/s.css"} & set(web.paths)


async def test_the_time_that_a_page_has(web: SmallWeb) -> None:
    web.pages["/slow"] = (
        "<p id='x'></p><script>setInterval(() => fetch('/late').then(() => 0), 20);"
        "setTimeout(() => { document.getElementById('x').textContent = 'late' }, 1200)</script>"
    )
    assert '<p id="x"></p>' in text(
        await alone(Selenium(conf_for(page__load__delay="1"), {}), web.url("/slow"))
    )
    found = text(await alone(Selenium(conf_for(page__load__delay="2"), {}), web.url("/slow")))
    assert '<p id="x">late</p>' in found


async def test_pictures_of_pages_are_kept(
    web: SmallWeb, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    conf = conf_for(take__screenshot="true")
    protocol = Selenium(conf.with_values({"screenshot.location": str(tmp_path / "shots")}), {})
    await alone(protocol, web.url("/story"))
    (picture,) = (tmp_path / "shots").iterdir()
    assert picture.suffix == ".png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    await alone(Selenium(conf, {}), web.url("/story"))
    assert "screenshot.location names no folder" in caplog.text


def made(**values: str) -> BrowserSettings:
    return BrowserSettings.from_conf(conf_for(**values))


async def test_settings() -> None:
    assert made(selenium__enable__headless="true").headless
    assert made(env="").headless == (
        "DISPLAY" not in os.environ and "WAYLAND_DISPLAY" not in os.environ
    )
    assert made(selenium__firefox__binary__timeout="7").start_time == 7
    hub = made(
        selenium__driver="remote",
        selenium__hub__protocol="https",
        selenium__hub__host="grid",
        selenium__hub__port="1",
        selenium__hub__path="/x/",
    ).hub
    assert hub == "https://grid:1/x"
    for name, value in [("selenium.driver", "firefox"), ("selenium.driver", "opera")]:
        with pytest.raises(
            ConfigError, match=rf"{name} \(.*\): expected chrome or remote, found '{value}'"
        ):
            made(**{name: value})
    with pytest.raises(
        ConfigError, match=r"selenium.grid.driver \(.*\): expected chrome or random, found 'edge'"
    ):
        made(selenium__driver="remote", selenium__grid__driver="edge")
    with pytest.raises(
        ConfigError, match=r"selenium.hub.protocol \(.*\): expected http or https, found 'ftp'"
    ):
        made(selenium__driver="remote", selenium__hub__protocol="ftp")


async def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"selenium.grid.binary: expected a browser's program, found none at /no/where",
    ):
        Selenium(conf_for(selenium__grid__binary="/no/where"), {})
    monkeypatch.setattr(base, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="needs the package websockets") as missing:
        Selenium(conf_for(selenium__driver="remote"), {})
    assert "minutch[browser]" in (missing.value.hint or "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="no browser: expected one of chromium"):
        Selenium(conf_for(), {})


async def test_a_program_that_is_no_browser(web: SmallWeb, tmp_path: Path) -> None:
    program = tmp_path / "browser"
    program.write_text("#!/bin/sh\necho cannot open display >&2\nexit 3\n", encoding="utf-8")
    program.chmod(0o755)
    status = (
        await alone(Selenium(conf_for(selenium__grid__binary=str(program)), {}), web.url("/story"))
    ).status
    assert status.code == codes.EXCEPTION
    assert "did not start: cannot open display" in str(status)


@pytest.mark.skipif(
    shutil.which("chromedriver") is None, reason="no chromedriver, which stands in for a grid"
)
async def test_a_browser_of_a_grid(web: SmallWeb, caplog: pytest.LogCaptureFixture) -> None:
    """Over the WebDriver protocol and a WebSocket; what the page loads is fetched here all the
    same.
    """
    pytest.importorskip("websockets")
    driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout is not None
        started = next(line for line in driver.stdout if "started successfully" in line)
        port = started.rstrip(".\n").rpartition(" ")[2]
        values = {
            "selenium.driver": "remote",
            "selenium.hub.host": "127.0.0.1",
            "selenium.hub.path": "/",
        }
        conf = conf_for(**values).with_values(
            {"selenium.hub.port": port, "selenium.grid.driver": "random"}
        )
        assert "what came late" in text(await alone(Selenium(conf, {}), web.url("/story")))
        assert all(asked.headers["user-agent"].startswith("minutch-test") for asked in web.asked)
        nobody = conf.with_values({"selenium.hub.path": "/nobody"})
        status = (await alone(Selenium(nobody, {}), web.url("/story"))).status
        assert "/nobody" in str(status)
    finally:
        driver.terminate()
        driver.wait()


# -- handlers --------------------------------------------------------------------------------------


class Collector:
    """A user's handler."""

    def should_process_url(self, url: str) -> bool:
        return url.endswith("/shop")

    def process_driver(self, driver: Driver) -> str:
        driver.find_element("css selector", "button").click()
        found = driver.find_element("id", "found")
        lines = [
            driver.title,
            driver.current_url,
            found.text,
            found.tag_name,
            found.get_attribute("class") or "",
        ]
        driver.find_element("name", "q").send_keys("words")
        lines += [str(driver.execute_script("return document.forms[0].q.value + arguments[0]", 1))]
        lines += [element.text for element in driver.find_elements("xpath", "//li")]
        driver.get(driver.current_url.replace("/shop", "/next"))
        lines += [driver.find_element("tag name", "p").text]
        return "\n".join(lines)


class Failing(Collector):
    """One that fails."""

    def process_driver(self, driver: Driver) -> str:
        raise KeyError("a handler's own mistake")


async def test_a_users_handler(web: SmallWeb) -> None:
    web.pages["/shop"] = """<title>Shop</title><form><input name=q></form><button
    onclick="fetch('/late').then(r => r.text()).then(t => { found.textContent = t })">more</button>
    <div id=found class=c></div><ul><li>one<li>two</ul>"""
    web.pages["/next"] = "<p>the next page</p>"
    protocol = Interactive(conf_for(interactiveselenium__handlers=f"{__name__}:Collector"), {})
    try:
        lines = text(await get(protocol, web.url("/shop"))).splitlines()
        assert lines == [
            "Shop",
            web.url("/shop"),
            "what came late",
            "div",
            "c",
            "words1",
            "one",
            "two",
            "the next page",
        ]
        assert "what came late" in text(await get(protocol, web.url("/story"))), (
            "no handler wants it: the page itself"
        )
    finally:
        await protocol.close()


async def test_a_handler_that_fails_fails_its_page(web: SmallWeb) -> None:
    web.pages["/shop"] = "<p>x</p>"
    protocol = Interactive(conf_for(interactiveselenium__handlers=f"{__name__}:Failing"), {})
    status = (await alone(protocol, web.url("/shop"))).status
    assert 'Failing: KeyError: "a handler\'s own mistake"' in str(status)


async def test_nutchs_handlers(web: SmallWeb) -> None:
    web.pages[
        "/ajax"
    ] = """<body><div id=x></div><a href="javascript:void(null);" onclick="x.textContent = \
'first'">1</a>
    <a href="javascript:void(null);" onclick="x.textContent = 'second'">2</a></body>"""
    names = "DefaultHandler, DefaultClickAllAjaxLinksHandler"
    found = text(
        await alone(
            Interactive(conf_for(interactiveselenium__handlers=names), {}), web.url("/ajax")
        )
    )
    assert found.count('<div id="x">first</div>') == found.count('<div id="x">second</div>') == 1
    assert found.startswith("<html>")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("NoHandler", "found 'NoHandler'"),
        ("no.such.module:X", "No module named"),
        ("json:Nothing", "no class"),
        ("collections:OrderedDict", "has no method should_process_url"),
        ("__import__('os')", "found"),
    ],
)
async def test_handlers_that_are_not_there(name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=r"interactiveselenium\.handlers \(.*" + why):
        Interactive(conf_for(interactiveselenium__handlers=name), {})
