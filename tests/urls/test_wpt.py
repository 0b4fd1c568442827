"""The web-platform-tests' urltestdata.json: what browsers make of 869 URLs.

`WhatwgResolver` gives the standard's answers, eight aside. Nutch's spelling (resolved, then its
default normalizers with hosts in ASCII) is another; each of the http and https cases in which the
two differ is listed in data/urltestdata-differences.jsonl with one of REASONS.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.plugin.chains import URLNormalizers
from minutch.urls.resolve import WhatwgResolver, resolve

DATA = Path(__file__).parent / "data"

BAD_PUNYCODE = (
    "upa-url does not look into labels that are Punycode already: these decode to nothing that is"
    " allowed"
)
WHATWG_DIFFERENCES = {
    "http://a.b.c.xn--pokxncvks": BAD_PUNYCODE,
    "http://10.0.0.xn--pokxncvks": BAD_PUNYCODE,
    "http://a.b.c.XN--pokxncvks": BAD_PUNYCODE,
    "http://a.b.c.Xn--pokxncvks": BAD_PUNYCODE,
    "http://10.0.0.XN--pokxncvks": BAD_PUNYCODE,
    "http://10.0.0.xN--pokxncvks": BAD_PUNYCODE,
    "file://xn--/p": BAD_PUNYCODE,
    "https://xn--/": BAD_PUNYCODE,
}
REASONS = {
    "address": "IPv4 and IPv6 addresses keep the form that they are written in",
    "backslash": "a backslash is a character as any other, not a slash",
    "blanks": (
        "tabs and line ends inside a URL are not dropped: forbidden in a host, encoded in a path"
    ),
    "end": "regex-normalize.xml takes an empty query away",
    "escapes": (
        "percent-encoding is normalised: nothing encoded without need, digits in capitals, % alone"
        " is %25"
    ),
    "lenient": "hosts and ports that the standard refuses are let through: the fetcher finds out",
    "scheme": "a scheme with fewer than two slashes is no absolute URL with a host",
    "segments": "empty path segments go, as do dots that are encoded",
    "slashes": "a third slash begins the path of a URL without host",
    "user": "user info goes from http and https URLs",
}


def cases() -> list[dict[str, Any]]:
    return [
        case
        for case in json.loads((DATA / "urltestdata.json").read_text(encoding="utf-8"))
        if isinstance(case, dict)
    ]


def expected(case: dict[str, Any]) -> str | None:
    return None if case.get("failure") else str(case["href"])


def is_http(case: dict[str, Any]) -> bool:
    """Tells whether a case is about http or https from beginning to end."""
    start = str(case["base"] or case["input"]).strip().lower()
    return start.startswith(("http:", "https:")) and (expected(case) or "http:").startswith(
        ("http:", "https:")
    )


def test_the_standards_way() -> None:
    differences = set()
    for case in cases():
        try:
            found: str | None = WhatwgResolver(case["base"] or "").resolve(case["input"])
        except UrlError:
            found = None
        if found != expected(case):
            differences.add(case["input"])
    assert len(cases()) == 869
    assert differences == WHATWG_DIFFERENCES.keys()


def test_nutchs_spelling() -> None:
    settings = {
        "urlnormalizer.basic.host.idn": "toAscii",
        "urlnormalizer.basic.host.idna2008": "true",
    }
    normalizers = URLNormalizers(Configuration.load([]).with_values(settings))
    found = []
    chosen = [case for case in cases() if is_http(case)]
    for case in chosen:
        base = case["base"] or case["input"]
        try:
            nutch = normalizers.normalize(resolve(base, case["input"] if case["base"] else ""))
        except UrlError:
            nutch = None
        whatwg = expected(case)
        without_fragment = None if whatwg is None else whatwg.partition("#")[0]
        if nutch != without_fragment:
            found.append((case["base"], case["input"], without_fragment, nutch))
    lines = (DATA / "urltestdata-differences.jsonl").read_text(encoding="utf-8").splitlines()
    listed = [json.loads(line) for line in lines]
    assert len(chosen) > 400
    assert {row["reason"] for row in listed} == REASONS.keys()
    assert sorted(map(repr, found)) == sorted(
        repr((r["base"], r["input"], r["whatwg"], r["nutch"])) for r in listed
    )
