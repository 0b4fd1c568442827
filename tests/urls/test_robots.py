"""robots.txt by RFC 9309, by google/robotstxt's own cases, and against hostile files."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.urls import robotsfile
from minutch.urls.robots import (
    ALLOW_ALL,
    ALLOW_NONE,
    RobotRules,
    agent_names,
    normal_path,
    normal_rule,
    parse_robots,
    robots_parser,
)
from minutch.urls.robotsfile import PathRule, line_of, read_robots
from tests.support.examples import few, tabled
from tests.urls.robotscases import GOOGLE, GOOGLE_SPEC, HOST, RFC_9309, Case
from tests.urls.strategies import any_text, urls

NORMALISED = (
    "RFC 9309 (2.2.2) compares after the same percent-encoding; google/robotstxt takes the URL as"
    " it is given"
)
FULL_NAME = (
    "a group that has the crawler's full name is its group, as in Nutch; Google knows names of"
    " letters only"
)
ROBOTS_TXT = (
    "RFC 9309 (2.2.2): robots.txt itself may always be fetched; the corpus asks for the rules"
)

DIFFERENCES = {
    ("ID_Encoding", "FooBot", "http://foo.bar/foo/bar/\u30c4"): NORMALISED,
    ("ID_Encoding", "FooBot", "http://foo.bar/foo/bar/baz"): NORMALISED,
    ("GoogleOnly_AcceptUserAgentUpToFirstSpace", "Foo Bar", "http://foo.bar/x/y"): FULL_NAME,
    ("non-ascii-paths", "FooBot", "http://foo.bar/foo/bar/\u30c4"): NORMALISED,
    ("non-ascii-paths", "FooBot", "http://foo.bar/foo/bar/baz"): NORMALISED,
    ("user-agent-name", "Foo Bar", "http://foo.bar/x/y"): FULL_NAME,
    ("327748", "asdfbot", "http://m.example.com/robots.txt"): ROBOTS_TXT,
    ("369883", "BarBot", "http://example.com/robots.txt"): ROBOTS_TXT,
    ("369883", "AB", "http://example.com/robots.txt"): ROBOTS_TXT,
    ("369883", "AB42bot", "http://example.com/foo/bar"): FULL_NAME,
    ("369883", "AB42bot", "http://example.com/"): FULL_NAME,
    ("860237", "XYZ", "http://example.com/robots.txt"): ROBOTS_TXT,
}
"""Cases of Google's that come out otherwise here, on purpose."""


def failures(cases: list[Case]) -> list[Case]:
    wrong = []
    for case in cases:
        _, body, agent, url, allowed = case
        if parse_robots(body, "text/plain", [agent.lower()]).is_allowed(url) is not allowed:
            wrong.append(case)
    return wrong


@tabled("case", RFC_9309)
def test_rfc_9309(case: Case) -> None:
    name, body, agent, path, allowed = case
    assert parse_robots(body, "text/plain", [agent]).is_allowed(HOST + path) is allowed, name


def test_googles_cases() -> None:
    found = failures(GOOGLE + GOOGLE_SPEC)
    assert (len(GOOGLE), len(GOOGLE_SPEC)) == (145, 400)
    assert len(failures(GOOGLE)) == 4
    assert len(failures(GOOGLE_SPEC)) == 10
    assert {(name, agent, url) for name, _, agent, url, _ in found} == DIFFERENCES.keys()


@tabled(
    ("body", "delay"),
    [
        ("User-agent: *\nCrawl-delay: 5", 5000),
        ("User-agent: *\nCrawl-delay: 0.5", 500),
        ("User-agent: *\nCrawl-delay: .25", 250),
        ("User-agent: *\nCrawl-delay: 0", 0),
        ("User-agent: *\nCrawl-delay: 1e3", None),
        ("User-agent: *\nCrawl-delay: 1.5e1", 15000),
        ("User-agent: *\nCrawl-delay: -1", None),
        ("User-agent: *\nCrawl-delay: 99999999999", (2**31 - 1) * 1000),
        (f"User-agent: *\nCrawl-delay: {'9' * 9000}", (2**31 - 1) * 1000),
        ("User-agent: *\nCrawl-delay: 1.0e999", (2**31 - 1) * 1000),
        ("User-agent: *\nCrawl-delay: soon", None),
        ("User-agent: *\nCrawl-delay: 7\nCrawl-delay: 3", 7000),
        ("User-agent: *\nCrawl-delay: 7\nDisallow: /x\nUser-agent: *\nCrawl-delay: 3", 3000),
        ("User-agent: *\nCrawl-delay: 7\nUser-agent: a\nDisallow: /", None),
        ("User-agent: *\nCrawl-delay: 7\n\nUser-agent: a\nCrawl-delay: 9", 9000),
        ("Crawl-delay: 7\nUser-agent: *\nDisallow: /", None),
    ],
)
def test_crawl_delay(body: str, delay: int | None) -> None:
    assert parse_robots(body.encode(), "", ["a"]).crawl_delay == delay


def test_sitemaps_stand_anywhere_and_count_once() -> None:
    lines = (
        *("Sitemap: http://a.org/1", "User-agent: b", "sitemap: /2", "Sitemaps: http://a.org/1"),
        *("http://a.org/my-sitemap.xml", "Sitemap: no url", "Sitemap: mailto:x", "http://a.org/x"),
    )
    body = "\n".join(lines).encode()
    expected = ("http://a.org/1", "http://h/2", "http://a.org/my-sitemap.xml")
    assert parse_robots(body, "", [], "http://h/robots.txt").sitemaps == expected
    assert parse_robots(body, "", []).sitemaps == (expected[0], expected[2])


def test_content_signals() -> None:
    body = (
        b"User-agent: *\nContent-Signal: search=yes, ai-train=NO\nDisallow:\nContent-Signal:"
        b" ai-input = no, nonsense\n"
    )
    assert parse_robots(body, "", ["a"]).content_signals == {
        "search": "yes",
        "ai-train": "no",
        "ai-input": "no",
    }
    body = b"Content-Signal: search=yes, ai-train=no\nUser-agent: a\nContent-Signal: search=no"
    assert parse_robots(body, "", ["a"]).content_signals == {"search": "no", "ai-train": "no"}
    above = {"search": "yes", "ai-train": "no"}
    assert parse_robots(body, "", ["b"]).content_signals == above


def test_a_content_usage_is_a_rule_behind_which_an_agent_begins_a_group() -> None:
    """draft-ietf-aipref-attach, 3. A Content-Signal is none, as Sitemap is none."""
    body = b"User-agent: a\n%s\nUser-agent: b\nDisallow: /"
    assert parse_robots(body % b"Content-Usage: search=n", "", ["a"]).is_allowed("http://h/")
    assert not parse_robots(body % b"Content-Signal: search=no", "", ["a"]).is_allowed("http://h/")


@pytest.mark.parametrize(
    ("body", "content_type", "allow_all"),
    [
        (b"", "text/plain", True),
        (b"<html><body>404</body></html>", "text/plain", True),
        (b"not found", "text/html; charset=utf-8", True),
        (b"<html>\nUser-agent: *<br>\nDisallow: /<br>\n</html>", "text/plain", False),
        (b"User-agent: *\nDisallow: /\n", "text/html", False),
    ],
)
def test_html_in_place_of_the_file(body: bytes, content_type: str, allow_all: bool) -> None:
    rules = parse_robots(body, content_type, ["a"])
    assert rules.allow_all is allow_all
    assert rules.is_allowed("http://a/") is allow_all


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef", b""])
def test_byte_order_marks(mark: bytes) -> None:
    assert not parse_robots(mark + b"User-agent: *\nDisallow: /\n", "", ["a"]).is_allowed(
        "http://a/x"
    )


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16(encoding: str) -> None:
    body = "\ufeffUser-agent: *\nDisallow: /\u00e9\n".encode(encoding)
    assert not parse_robots(body, "", ["a"]).is_allowed("http://a/%c3%a9")


def test_several_names_of_one_crawler() -> None:
    body = (
        b"User-agent: a\nDisallow: /a\n\nUser-agent: b\nDisallow: /b\n\nUser-agent:"
        b" *\nDisallow: /\n"
    )
    rules = parse_robots(body, "", ["a", "b"])
    assert [rules.is_allowed(f"http://h/{name}") for name in "abc"] == [False, False, True]
    assert not parse_robots(body, "", []).is_allowed("http://h/c")


def test_the_index_page_is_its_folder() -> None:
    rules = parse_robots(b"User-agent: *\nAllow: /a/index.html\nDisallow: /\n", "", ["x"])
    assert [
        rules.is_allowed(f"http://h{path}")
        for path in ("/a/", "/a/index.html", "/a/index.htm", "/a/b")
    ] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("name", ["index.html", "index.htm"])
def test_a_forbidden_index_page_does_not_forbid_its_folder(name: str) -> None:
    rules = parse_robots(
        f"User-agent: *\nDisallow: /{name}\nDisallow: /a/{name}\n".encode(), "", ["x"]
    )
    assert [
        rules.is_allowed(f"http://h{path}") for path in ("/", "/a/", f"/{name}", f"/a/{name}")
    ] == [
        True,
        True,
        False,
        False,
    ]


def test_constants() -> None:
    assert ALLOW_ALL.is_allowed("http://a/")
    assert not ALLOW_NONE.is_allowed("http://a/robots.txt")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://a", "/"),
        ("http://a?b", "/?b"),
        ("http://a/b%7e%2f c*$", "/b~%2F%20c%2A%24"),
        ("http://u:p@a:80/b#c", "/b"),
        ("nothing", "/"),
        ("file:x", "/x"),
    ],
)
def test_normal_path(url: str, path: str) -> None:
    assert normal_path(url) == path


def test_normal_rule() -> None:
    assert normal_rule("/a%7e*b$c d$") == "/a~*b%24c%20d$"
    assert normal_rule("/a\\b") == normal_rule("/a%5cb") == normal_path("http://a.org/a\\b")


def test_agent_names() -> None:
    conf = Configuration().with_values(
        {"http.agent.name": " MyBot ", "http.robots.agents": "other, mybot,*"}
    )
    assert agent_names(conf) == ["mybot", "other"]
    with pytest.raises(ConfigError, match=r"http\.agent\.name"):
        agent_names(Configuration())


def test_the_parser_that_is_configured() -> None:
    conf = Configuration().with_values({"http.agent.name": "a"})
    assert not robots_parser(conf)(b"User-agent: a\nDisallow: /\n", "text/plain").is_allowed(
        "http://a/"
    )
    with pytest.raises(ConfigError, match=r"http\.robots\.parser"):
        robots_parser(conf.with_values({"http.robots.parser": "other"}))


class CountingPath(str):
    """A path that counts how often it is searched."""

    searches = 0

    def find(self, *args: object) -> int:
        CountingPath.searches += 1
        return super().find(*args)  # type: ignore[arg-type]


def test_matching_is_linear_in_the_stars(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that takes a backtracking matcher for ever: one search for each star."""
    monkeypatch.setattr(CountingPath, "searches", 0)
    rules = RobotRules((PathRule("/" + "*a" * 500 + "b$", allow=False),))
    assert rules.is_path_allowed(CountingPath("/" + "a" * 5000))
    assert CountingPath.searches <= 501


def test_many_rules_are_looked_up_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []
    path = robotsfile._Plain.path

    def look_at(self: robotsfile._Plain, number: int) -> str:
        looked_at.append(number)
        return path(self, number)

    monkeypatch.setattr(robotsfile._Plain, "path", look_at)
    body = "User-agent: *\n" + "".join(
        f"Disallow: /{number}/\nAllow: /{number}/x\n" for number in range(10_000)
    )
    rules = parse_robots(body.encode(), "", ["a"])
    assert not rules.is_allowed("http://a/9999/y")
    assert rules.is_allowed("http://a/9999/x")
    assert rules.is_allowed("http://a/x")
    assert len(looked_at) <= 3


def test_only_longer_wildcards_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    matches = robotsfile._matches

    def try_one(first: str, rest: str, path: str) -> bool:
        tried.append(rest)
        return matches(first, rest, path)

    monkeypatch.setattr(robotsfile, "_matches", try_one)
    rules = RobotRules(
        (
            PathRule("/*b*c", allow=True),
            PathRule("/abcdef", allow=False),
            PathRule("/*cde*fgh", allow=True),
        )
    )
    assert not rules.is_path_allowed("/abcdef")
    assert tried == ["cde*fgh"]


def test_a_path_is_compared_with_so_many_wildcards_and_refused_if_there_are_more() -> None:
    lines = "".join(f"Disallow: /*{number:x}\n" for number in range(30_000))
    rules = parse_robots(f"User-agent: *\n{lines}Allow: /z*\n".encode(), "", ["a"])
    assert rules.is_allowed("http://a/zzz")
    assert not rules.is_allowed("http://a/zzz/1f40")
    assert rules.is_allowed("http://a/" + "z" * 100)
    assert not rules.is_allowed("http://a/" + "z" * 1000)
    assert rules.deciding("/" + "z" * 1000) == PathRule(robotsfile.TOO_MANY, allow=False)
    ordinary = parse_robots(b"User-agent: *\n" + b"Disallow: /*q\n" * 900, "", ["a"])
    assert ordinary.is_allowed("http://a/" + "z" * 4000)


@pytest.mark.parametrize(
    ("count", "line", "most"),
    few(
        [
            (20, "Disallow: /folder-%d/", 1_600),
            (300, "Disallow: /%x", 8_000),
            (3_000, "Disallow: /%x", 60_000),
            (30_000, "Disallow: /%x", 600_000),
        ]
    ),
)
def test_rules_say_what_they_cost_in_memory(count: int, line: str, most: int) -> None:
    body = "\n".join(["User-agent: *", *(line % n for n in range(count))])
    parse_robots(body.encode(), "", ["a"])
    gc.freeze()  # only what is new is looked at; all objects took a second
    gc.collect()  # empties the free lists: what comes from them is not counted
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = [parse_robots(body.encode(), "", ["a"]) for _ in range(3)]
        gc.collect()
        each = (tracemalloc.get_traced_memory()[0] - before) / len(kept)
    finally:
        tracemalloc.stop()
    assert kept[0].cost == pytest.approx(each, rel=0.1, abs=100)
    assert kept[0].cost < most
    assert not kept[0].is_allowed(f"http://a{(line % 7).partition(' ')[2]}x")


def test_files_that_say_nothing_share_their_rules() -> None:
    nothing = [b"User-agent: *\nDisallow:\n", b"User-agent: other\nDisallow: /\n", b"# no\n"]
    assert len({parse_robots(body, "", ["a"]) for body in nothing}) == 1
    assert {parse_robots(body, "text/html", ["a"]) for body in (b"", b"<html>")} == {ALLOW_ALL}


@given(st.binary(max_size=200) | any_text.map(str.encode), urls)
def test_any_bytes_are_a_file(body: bytes, url: str) -> None:
    parse_robots(body, "text/html", ["a"]).is_allowed(url)
    read_robots(body)


some_lines = st.sampled_from(
    [
        "User-agent: *",
        "User-agent: a",
        "Disallow: /",
        "Disallow: /a",
        "Allow: /a",
        "Allow: /a*c",
        "Disallow: /*c$",
        "Allow: /$",
        "Crawl-delay: 2",
        "",
    ]
)


@given(st.lists(some_lines, max_size=12), st.text(st.sampled_from("abc/"), max_size=5))
def test_plain_and_wildcard_rules_decide_as_a_walk_over_all_rules(
    text: list[str], path: str
) -> None:
    rules = parse_robots("\n".join(text).encode(), "", ["a"])
    matching = [rule for rule in rules.rules if _matches(rule, "/" + path)]
    longest = max((len(rule.path) for rule in matching), default=0)
    expected = not matching or any(rule.allow for rule in matching if len(rule.path) == longest)
    assert rules.is_path_allowed("/" + path) is expected


def _matches(rule: PathRule, path: str) -> bool:
    """By the rule alone, turned round: a matching Disallow forbids."""
    return not RobotRules((PathRule(rule.path, allow=False),)).is_path_allowed(path)


FILE = (
    b"# ours\r\nUser-agent: a\r\n\r\nDisallow: /x\r\nAllow: /x/y # but this\r\n\nUser-agent:"
    b" *\nDisallow: /*.gif$\n"
)


@pytest.mark.parametrize(
    ("agent", "path", "line", "written"),
    [
        ("a", "/x/1", 4, "Disallow: /x"),
        ("a", "/x/y/1", 5, "Allow: /x/y # but this"),
        ("a", "/z", 0, ""),
        ("b", "/1.gif", 8, "Disallow: /*.gif$"),
        ("b", "/robots.txt", 0, ""),
    ],
)
def test_the_line_that_decides(agent: str, path: str, line: int, written: str) -> None:
    rules = parse_robots(FILE, "text/plain", [agent])
    rule = rules.deciding(path)
    assert (0 if rule is None else rule.line) == line
    assert line_of(FILE, line) == written
    assert rules.is_path_allowed(path) is (rule is None or rule.allow)


def test_of_two_rules_that_say_the_same_the_first_line_is_named() -> None:
    rules = parse_robots(
        b"User-agent: *\nDisallow: /a\nDisallow: /a\nAllow: /b\nDisallow: /b\n", "", ["x"]
    )
    assert sorted((rule.path, rule.allow, rule.line) for rule in rules.rules) == [
        *(("/a", False, 2), ("/b", False, 5), ("/b", True, 4)),
    ]
    deciding = rules.deciding("/b")
    assert deciding is not None and deciding.allow and deciding.line == 4


@given(
    st.lists(st.tuples(st.sampled_from(["/", "/a", "/a*", "/*b$", "/ab", "/a$"]), st.booleans())),
    urls,
)
def test_the_deciding_rule_decides(rules: list[tuple[str, bool]], url: str) -> None:
    found = RobotRules(
        tuple(PathRule(path, allow, number) for number, (path, allow) in enumerate(rules, 1))
    )
    rule = found.deciding(normal_path(url))
    assert found.is_allowed(url) is (rule is None or rule.allow)
