"""creativecommons: the licence of a page as parse metadata."""

from __future__ import annotations

import pytest

from tests.support.examples import tabled
from tests.support.pages import configuration, content, parse, parse_all

BY, NC = (
    "http://creativecommons.org/licenses/by/2.0/",
    "https://creativecommons.org/licenses/by-nc/4.0/",
)
RDF = """<!-- <rdf:RDF xmlns="{cc}" xmlns:dc="http://purl.org/dc/elements/1.1/"
   xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<Work rdf:about=""><dc:type rdf:resource="http://purl.org/dc/dcmitype/{type}" /></Work>
<License rdf:about="http://creativecommons.org/licenses/by-nc/1.0"/></rdf:RDF> -->"""


def rdf(cc: str = "http://web.resource.org/cc/", kind: str = "Text") -> str:
    return RDF.format(cc=cc, type=kind)


def found(page: str) -> dict[str, list[str]]:
    meta = parse(page, configuration("parse-html|creativecommons")).data.parse_meta
    return {name: values for name, values in meta.items() if name.startswith(("License", "Work"))}


def licence(url: str, where: str, kind: str | None = None) -> dict[str, list[str]]:
    values = {"License-Url": url, "License-Location": where, "Work-Type": kind}
    return {name: [value] for name, value in values.items() if value is not None}


@tabled(
    ("page", "expected"),
    [
        (f"<a href='{BY}'>x</a><a href='{NC}'>", licence(BY, "a")),
        (f"<a href='{BY}'>x</a><a rel=license href='{NC}'>", licence(NC, "rel")),
        (f"<a rel='nofollow License' href='{NC}'><a rel=license href='{BY}'>", licence(NC, "rel")),
        (
            "<base href='http://creativecommons.org/x'><a href=/licenses/by/3.0/>",
            {},
        ),  # the page's URL is the base
        (
            f"<a rel=license href='{BY}'>{rdf()}",
            licence("http://creativecommons.org/licenses/by-nc/1.0", "rdf", "text"),
        ),
        (
            rdf("http://creativecommons.org/ns#", "Sound") + "<p>",
            licence("http://creativecommons.org/licenses/by-nc/1.0", "rdf", "audio"),
        ),
        (rdf(kind="Nothing"), licence("http://creativecommons.org/licenses/by-nc/1.0", "rdf")),
        ("<a href='http://creativecommons.org/licenses/'>", {}),
        ("<a href='http://creativecommons.org.example/licenses/by/2.0/'>", {}),
        ("<a href='ftp://creativecommons.org/licenses/by/2.0/'>", {}),
        ("<a href='http://[/licenses/by/2.0/'>", {}),
        ("<p>none", {}),
    ],
)
def test_licence(page: str, expected: dict[str, list[str]]) -> None:
    assert found(page) == expected


@pytest.mark.parametrize(
    "comment",
    [
        "<rdf:RDF http://web.resource.org/cc/",
        "RDF http://web.resource.org/cc/",
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><RDF a="http://web.resource.org/cc/">&x;</RDF>',
        '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:c="http://web.resource.org/cc/">'
        "<c:License/><c:Work/></r:RDF>",
    ],
)
def test_broken_rdf_is_none(comment: str) -> None:
    assert found(f"<!--{comment}--><a href='{BY}'>") == licence(BY, "a")


def test_pages_without_may_be_left_out() -> None:
    conf = configuration(
        "parse-html|creativecommons", **{"creativecommons.exclude.unlicensed": "true"}
    )
    assert parse(f"<a href='{BY}'>", conf).data.status.is_success
    assert not parse_all(content("<p>none"), conf).is_any_success
