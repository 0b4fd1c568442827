"""Cases of RFC 9309: (name, robots.txt, agent, URL or path, allowed)."""

from __future__ import annotations

import json
from pathlib import Path

Case = tuple[str, bytes, str, str, bool]

HOST = "http://example.org"
_ALL = "User-agent: *\n"

RFC_9309: list[Case] = [
    # 2.2.1 the user-agent line
    ("2.2.1 a group of its own", b"User-agent: a\nDisallow: /\n", "a", "/x", False),
    ("2.2.1 another's group", b"User-agent: b\nDisallow: /\n", "a", "/x", True),
    ("2.2.1 names are without case", b"User-Agent: FooBot\nDisallow: /\n", "foobot", "/x", False),
    ("2.2.1 everybody's group", b"User-agent: *\nDisallow: /\n", "a", "/x", False),
    (
        "2.2.1 a group of its own before everybody's",
        b"User-agent: *\nDisallow: /\n\nUser-agent: a\nDisallow: /y\n",
        "a",
        "/x",
        True,
    ),
    (
        "2.2.1 whatever the order",
        b"User-agent: a\nDisallow: /y\n\nUser-agent: *\nDisallow: /\n",
        "a",
        "/x",
        True,
    ),
    (
        "2.2.1 several groups are one",
        (
            b"User-agent: a\nDisallow: /x\n\nUser-agent: b\nDisallow: /\n\nUser-agent: a\nDisallow:"
            b" /y\n"
        ),
        "a",
        "/y",
        False,
    ),
    (
        "2.2.1 the first of them too",
        (
            b"User-agent: a\nDisallow: /x\n\nUser-agent: b\nDisallow: /\n\nUser-agent: a\nDisallow:"
            b" /y\n"
        ),
        "a",
        "/x",
        False,
    ),
    (
        "2.2.1 several names, one group",
        b"User-agent: a\nUser-agent: b\nDisallow: /\n",
        "a",
        "/x",
        False,
    ),
    ("2.2.1 a version behind the name", b"User-agent: a/1.0\nDisallow: /\n", "a", "/x", False),
    ("2.2.1 a name is no prefix of another", b"User-agent: ab\nDisallow: /\n", "a", "/x", True),
    ("2.2.1 nor the other way round", b"User-agent: a\nDisallow: /\n", "ab", "/x", True),
    (
        "2.2.1 a group without rules counts",
        b"User-agent: a\n\nUser-agent: *\nDisallow: /\n",
        "b",
        "/x",
        False,
    ),
    ("2.2.1 no group at all", b"Disallow: /\n", "a", "/x", True),
    (
        "2.2.1 other lines end no group",
        (
            b"User-agent: a\nSitemap: http://example.org/s\nCrawl-delay: 1\nUser-agent:"
            b" b\nDisallow: /\n"
        ),
        "a",
        "/x",
        False,
    ),
    # 2.2.2 allow and disallow
    ("2.2.2 the longest rule", b"User-agent: *\nAllow: /a/b\nDisallow: /a\n", "a", "/a/b/c", True),
    (
        "2.2.2 the longest rule forbids",
        b"User-agent: *\nAllow: /a\nDisallow: /a/b\n",
        "a",
        "/a/b/c",
        False,
    ),
    ("2.2.2 allow wins a tie", b"User-agent: *\nDisallow: /a\nAllow: /a\n", "a", "/a", True),
    ("2.2.2 an empty rule is none", b"User-agent: *\nDisallow:\n", "a", "/x", True),
    ("2.2.2 what no rule mentions", b"User-agent: *\nDisallow: /y\n", "a", "/x", True),
    ("2.2.2 paths are with case", b"User-agent: *\nDisallow: /X\n", "a", "/x", True),
    ("2.2.2 robots.txt itself", b"User-agent: *\nDisallow: /\n", "a", "/robots.txt", True),
    (
        "2.2.2 a rule begins at the path's start",
        b"User-agent: *\nDisallow: /b\n",
        "a",
        "/a/b",
        True,
    ),
    ("2.2.2 the query counts", b"User-agent: *\nDisallow: /a?b\n", "a", "/a?bc", False),
    ("2.2.2 the fragment does not", b"User-agent: *\nDisallow: /a$\n", "a", "/a#b", False),
    ("2.2.2 no path is the root", b"User-agent: *\nDisallow: /$\n", "a", "", False),
    (
        "2.2.2 rules in UTF-8, URLs encoded",
        b"User-agent: *\nDisallow: /\xe3\x83\x84\n",
        "a",
        "/%E3%83%84",
        False,
    ),
    (
        "2.2.2 rules encoded, URLs not",
        b"User-agent: *\nDisallow: /%E3%83%84\n",
        "a",
        "/\u30c4",
        False,
    ),
    (
        "2.2.2 encoded without need in the rule",
        b"User-agent: *\nDisallow: /%62%61%7A\n",
        "a",
        "/baz",
        False,
    ),
    (
        "2.2.2 encoded without need in the URL",
        b"User-agent: *\nDisallow: /baz\n",
        "a",
        "/%62%61%7a",
        False,
    ),
    ("2.2.2 digits without case", b"User-agent: *\nDisallow: /%3b\n", "a", "/%3B", False),
    (
        "2.2.2 a reserved character is not its encoding",
        b"User-agent: *\nDisallow: /a%2Fb\n",
        "a",
        "/a/b",
        True,
    ),
    # 2.2.3 special characters
    ("2.2.3 a star", b"User-agent: *\nDisallow: /*.gif\n", "a", "/x/y.gif?z", False),
    ("2.2.3 a star for nothing", b"User-agent: *\nDisallow: /a*b\n", "a", "/ab", False),
    ("2.2.3 stars in a row", b"User-agent: *\nDisallow: /a***b\n", "a", "/axb", False),
    ("2.2.3 a star at the end", b"User-agent: *\nDisallow: /a*\n", "a", "/abc", False),
    ("2.2.3 the end", b"User-agent: *\nDisallow: /a$\n", "a", "/a", False),
    ("2.2.3 not the end", b"User-agent: *\nDisallow: /a$\n", "a", "/ab", True),
    (
        "2.2.3 the last place counts",
        b"User-agent: *\nDisallow: /*.php$\n",
        "a",
        "/a.php/b.php",
        False,
    ),
    ("2.2.3 a star before the end", b"User-agent: *\nDisallow: /a*$\n", "a", "/abc", False),
    ("2.2.3 pieces don't overlap", b"User-agent: *\nDisallow: /ab*ba$\n", "a", "/aba", True),
    (
        "2.2.3 an encoded star is a star in the path",
        b"User-agent: *\nDisallow: /a%2Ab\n",
        "a",
        "/a*b",
        False,
    ),
    ("2.2.3 and nothing else", b"User-agent: *\nDisallow: /a%2Ab\n", "a", "/axb", True),
    ("2.2.3 an encoded dollar", b"User-agent: *\nDisallow: /a%24\n", "a", "/a$b", False),
    ("2.2.3 a dollar in the middle", b"User-agent: *\nDisallow: /a$b\n", "a", "/a$b", False),
    ("2.2.3 a comment", b"User-agent: *\nDisallow: /a # /b\n", "a", "/a", False),
    # 2.2 and 2.3: lines and bytes
    ("2.2 line feeds", b"User-agent: *\nDisallow: /a\n", "a", "/a", False),
    ("2.2 carriage returns", b"User-agent: *\rDisallow: /a\r", "a", "/a", False),
    ("2.2 both", b"User-agent: *\r\nDisallow: /a\r\n", "a", "/a", False),
    ("2.2 no end of line at the end", b"User-agent: *\nDisallow: /a", "a", "/a", False),
    ("2.2 blanks everywhere", b" \tUser-agent \t:\t* \n  Disallow\t: \t/a \t\n", "a", "/a", False),
    ("2.2 keys without case", b"USER-AGENT: *\nDISALLOW: /a\n", "a", "/a", False),
    ("2.2 a byte order mark", b"\xef\xbb\xbfUser-agent: *\nDisallow: /a\n", "a", "/a", False),
    (
        "2.2 nonsense between",
        b"User-agent: *\n\x00\xff\xfe::\n<>\nDisallow: /a\n",
        "a",
        "/a",
        False,
    ),
    (
        "2.5 500 KiB are read",
        _ALL.encode() + b"# " + b"x" * 511_950 + b"\nDisallow: /a\n",
        "a",
        "/a",
        False,
    ),
    (
        "2.5 more are not",
        _ALL.encode() + b"#" + b"x\n#" * 180_000 + b"\nDisallow: /a\n",
        "a",
        "/a",
        True,
    ),
]


def load(name: str) -> list[Case]:
    """The cases of a data file."""
    path = Path(__file__).parent / "data" / name
    cases: list[Case] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        robots = row["robots"].encode("latin-1")
        cases += [
            (row["case"], robots, agent, url, allowed) for agent, url, allowed in row["checks"]
        ]
    return cases


def long_lines() -> list[Case]:
    """google/robotstxt cuts lines at 16,663 bytes; so the part of a rule that is left counts."""
    room = 2083 * 8 + 1
    forbidden = "/x/" + "a" * (room - 3 - 3 - len("disallow: "))
    first, second = ("/x/" + letter * (room - 3 - 3 - len("allow: ")) for letter in "ab")
    one = f"user-agent: FooBot\ndisallow: {forbidden}/qux\n".encode()
    two = f"user-agent: FooBot\ndisallow: /\nallow: {first}/qux\nallow: {second}/qux\n".encode()
    host = "http://foo.bar"
    return [
        ("long lines", one, "FooBot", f"{host}{forbidden}/fux", False),
        ("long lines", two, "FooBot", f"{host}{first}/fux", True),
        ("long lines", two, "FooBot", f"{host}{second}/fux", True),
    ]


GOOGLE = load("robots-google.jsonl") + long_lines()
GOOGLE_SPEC = load("robots-google-spec.jsonl")
