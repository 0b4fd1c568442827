"""The live page's paths: who may come in, what is shown, what the buttons do."""

from __future__ import annotations

import asyncio
import io
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from starlette.testclient import TestClient

from minutch.clock import FakeClock
from minutch.cycle.fetch.stats import Details, Failure, FetchStats, HostTimes, QueueState
from minutch.cycle.fetch.watch import Watch
from minutch.inspect.live.liveapp import make
from minutch.job import Progress
from minutch.web.access import LOCAL, Access
from tests.cycle.fetch.test_seen import NOW

TOKEN = "a-token-that-nobody-guesses"
HOSTILE = (
    "evil.example'\"><script>document.title='owned'</script><img src=x"
    " onerror=alert(1)>\u202e\x1b[31m"
)
DETAILS = Details(
    [(HOSTILE, HostTimes(3, 9000, 5000, 2)), ("b.example", HostTimes(1, 20, 20, 0))],
    [QueueState(HOSTILE, 800, 1, 4800, 5000)],
    [Failure(1_700_000_000_000, f"http://{HOSTILE}/", f"it broke: {HOSTILE}")],
    1_700_000_019_000,
)


BUSY = replace(NOW, outcomes=Counter({1: 12_345, 4: 152, 15: 7, 6: 3}))


def busy() -> Watch:
    """A crawl in its second round that has met a host which means harm."""
    watch = Watch("crawl crawl", FakeClock(1_700_000_000_000), can_stop=True)
    watch.begin("Round 1 of 5")
    watch.row("generate", 0.1, "15 pages to fetch")
    watch.row("fetch", 31.4, "15 pages")
    watch.begin(f"Round 2 of 5 {HOSTILE}")
    watch.step, watch.place = "fetch", "round 2 of 5"
    NOW.details = None
    for _ in range(20):
        watch.clock.advance(1)
        watch.show(BUSY)
    watch.details = DETAILS
    return watch


@pytest.fixture
def watch() -> Watch:
    return busy()


@pytest.fixture
def client(watch: Watch) -> TestClient:
    access = Access(TOKEN, LOCAL, frozenset({"/metrics"}), cookie="minutch-1")
    return TestClient(make(watch, access), base_url="http://127.0.0.1", follow_redirects=False)


def let_in(client: TestClient) -> TestClient:
    assert client.get("/", params={"token": TOKEN}).status_code == 303
    return client


# -- who may come in -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/?token=wrong", "/?token=", f"/pause?token={TOKEN}"])
def test_nobody_comes_in_without_the_token(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 401 and "crawl" not in answer.text
    assert answer.headers["WWW-Authenticate"].startswith("Basic")


def test_the_link_lets_a_browser_in_and_leaves_its_address(client: TestClient) -> None:
    answer = client.get("/", params={"token": TOKEN})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/")
    cookie = answer.headers["Set-Cookie"]
    assert (
        cookie.startswith(f"minutch-1={TOKEN};")
        and "HttpOnly" in cookie
        and "SameSite=strict" in cookie
    )
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    "how", [{"headers": {"Authorization": f"Bearer {TOKEN}"}}, {"auth": ("anybody", TOKEN)}]
)
def test_programs_give_it_in_a_header(client: TestClient, how: dict[str, object]) -> None:
    assert client.get("/", **how).status_code == 200  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::1"])
@pytest.mark.parametrize("path", ["/", "/metrics", f"/?token={TOKEN}"])
def test_other_names_of_this_machine_are_refused(client: TestClient, host: str, path: str) -> None:
    assert let_in(client).get(path, headers={"Host": host}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}],
)
def test_pages_of_other_sites_can_not_press_buttons(
    client: TestClient, watch: Watch, headers: dict[str, str]
) -> None:
    assert let_in(client).post("/pause", headers=headers).status_code == 403
    assert not watch.paused


def test_figures_need_no_token_and_name_nobody(client: TestClient) -> None:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "example" not in answer.text and "minutch_fetch_pages_total 12345" in answer.text


# -- buttons ---------------------------------------------------------------------------------------


def buttons(client: TestClient) -> list[str]:
    return re.findall(r'formaction="([^"]*)"', client.get("/").text)


def test_buttons(client: TestClient, watch: Watch) -> None:
    let_in(client)
    assert buttons(client) == ["/pause", "/stop"]
    answer = client.post("/pause")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/")
    assert watch.paused and buttons(client) == ["/resume", "/stop"]
    assert "<title>paused ·" in client.get("/").text
    client.post("/resume")
    client.post("/stop")
    assert not watch.paused and watch.stopping
    assert (
        buttons(client) == ["/pause", "/go-on"] and "Stops after this round" in client.get("/").text
    )
    client.post("/go-on")
    assert not watch.stopping


@pytest.mark.parametrize("path", ["/pause", "/resume", "/stop", "/go-on"])
def test_to_look_at_a_button_does_not_press_it(client: TestClient, watch: Watch, path: str) -> None:
    assert let_in(client).get(path).status_code == 405
    assert not watch.paused and not watch.stopping


def test_a_fetch_alone_has_no_rounds_to_stop_after() -> None:
    watch = Watch("fetch segment", FakeClock())
    client = TestClient(make(watch, Access(None, LOCAL)), base_url="http://localhost")
    assert buttons(client) == ["/pause"]
    client.post("/stop")
    assert not watch.stopping
    assert "Rounds" not in client.get("/").text


# -- what is shown ---------------------------------------------------------------------------------


class Tags(HTMLParser):
    """The tags of a page, with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def test_the_page_shows_where_the_crawl_is(client: TestClient) -> None:
    page = Tags(let_in(client).get("/").text)
    for text in (
        "round 2 of 5: fetch",
        "12,500 of 25,000",
        "2 given up",
        "15 pages",
        "b.example",
        "22:13:20",
    ):
        assert text in page.text, text
    assert ("progress", {"max": "25000", "value": "12500", "aria-label": "Pages"}) in page.found
    assert (
        "12,500 of 25,000 URLs done: 12,345 fetched, 152 gone, 3 denied; besides, 7 links followed."
        in page.text
    )
    assert ", 1:23 left" in page.text and "As of 22:13:39." in page.text


def test_hostile_names_are_text_and_nothing_comes_from_outside(client: TestClient) -> None:
    answer = let_in(client).get("/")
    page = Tags(answer.text)
    assert [
        tag for tag, _ in page.found if tag in ("script", "img", "iframe", "object", "link")
    ] == ["link", "script"]
    assert not any(
        name.startswith("on") or name == "style"
        for _, attributes in page.found
        for name in attributes
    )
    names = ("href", "src", "action", "formaction")
    targets = {a[name] for _, a in page.found for name in names if name in a}
    windows = {f"/?minutes={minutes}" for minutes in (1, 10, 60)}
    assert targets == {"/metrics", "/pause", "/stop", "#main", "data:,", *windows}
    assert page.text.count("document.title='owned'") == 5 and "\x1b" not in answer.text
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert (
        answer.headers["Referrer-Policy"] == "same-origin"
        and answer.headers["X-Content-Type-Options"] == "nosniff"
    )


def test_without_scripts_it_loads_itself_again(client: TestClient) -> None:
    assert (
        '<noscript><meta http-equiv="refresh" content="5"></noscript>'
        in let_in(client).get("/").text
    )


def test_a_step_shows_its_progress(client: TestClient, watch: Watch) -> None:
    watch.fetched(FetchStats(), 0)
    with (
        watch.running("parse", "round 2 of 5"),
        Progress(
            "parse", 400, clock=watch.clock, err=io.StringIO(), unit="pages", watch=watch
        ) as progress,
    ):
        progress.advance(100)
        text = let_in(client).get("/").text
        assert "round 2 of 5: parse" in text and "100 of 400 pages" in text
    assert watch.progress is None and watch.step == ""


@pytest.mark.parametrize(("asked", "places"), [("1", 12), ("10", 60), ("60", 60), ("x", 60)])
def test_the_plot_shows_a_fixed_time(
    client: TestClient, watch: Watch, asked: str, places: int
) -> None:
    """Columns are means of pages a second over fixed times; rounds are marked where they began."""
    text = let_in(client).get("/", params={"minutes": asked}).text
    plot = text[text.index('id="chart"') : text.index("Time that the plot shows")]
    assert plot.count('class="place"') == places
    assert plot.count('class="turn"') == 2 and "Round 1<" in plot and "Round 2" in plot
    assert "Pages a second" in plot and "until 22:13:40" in plot
    current = asked if asked != "x" else "10"
    assert f'href="/?minutes={current}" aria-current="true"' in text
    means = [float(mean) for mean in re.findall(r": pages a second ([\d.]+)<", plot)]
    seconds = {"1": 5, "60": 60}.get(asked, 10)
    assert sum(means) * seconds == pytest.approx(20 * BUSY.pages_last_second, rel=0.01)


def test_speed_is_remembered_from_one_fetch_to_the_next(watch: Watch) -> None:
    watch.fetched(FetchStats(), 0)
    watch.clock.advance(30)
    watch.show(BUSY)
    assert len(watch.pages) == 21 and watch.pages[-1][0] - watch.pages[-2][0] == 30_000


def test_rounds_that_have_ended_are_folded(client: TestClient) -> None:
    text = let_in(client).get("/").text
    (folded,) = re.findall("<details.*?</details>", text)
    assert "Round 1 of 5</bdi>, 0:32: 15 pages</summary>" in folded and "Round 2" not in folded
    assert "open" not in folded.partition(">")[0]


def test_an_empty_watch_can_be_shown() -> None:
    watch = Watch("crawl crawl", FakeClock(), can_stop=True)
    text = TestClient(make(watch, Access(None, LOCAL)), base_url="http://localhost").get("/").text
    assert "Nothing fetched yet" in text and "No step has ended yet" in text


# -- pause -----------------------------------------------------------------------------------------


def test_a_fetch_that_begins_in_a_pause_is_held_at_once() -> None:
    watch = Watch("x", FakeClock())
    said: list[bool] = []
    watch.pause(True)
    with watch.obeying(said.append):
        watch.pause(False)
        watch.pause(True)
    watch.pause(False)
    assert said == [True, False, True]


async def test_a_job_waits_while_it_is_paused() -> None:
    watch = Watch("x", FakeClock())
    watch.wait_while_paused()
    watch.pause(True)
    waiting = asyncio.create_task(asyncio.to_thread(watch.wait_while_paused))
    await asyncio.sleep(0.02)
    assert not waiting.done()
    watch.pause(False)
    await asyncio.wait_for(waiting, 5)
