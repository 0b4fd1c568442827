"""conf/commoncrawl-metadata.schema.json: the samples of Common Crawl's page, shapes of real files,
and what is wrong.

The samples are given as the page has them, mended where they are broken: the HTML sample lacked a
comma behind gunzip_content_len and the ends of its arrays and objects, and had `..` for what it
left out; so had the Atom sample.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.annexes.dataset.schema import SCHEMA, check, is_valid
from tests.support.examples import tabled

Json = dict[str, Any]

FAILURE = json.loads("""{
    "attempt_time": 1328296943586,
    "disposition": "FAILURE",
    "failure_reason": "RedirectFailed",
    "failure_detail": "Alread Visited Redirect Location:http://www.amazon.com/Death-Winter-Star-Generation-Unnumbered/dp/074349721X"
}""")
HTML = json.loads(r"""{
    "attempt_time": 1328296964112,
    "disposition": "SUCCESS",
    "server_ip": "98.139.126.20",
    "http_result": 200,
    "http_headers": {
        "response": "HTTP/1.1 200 OK",
        "date": "Fri, 03 Feb 2012 19:24:05 GMT",
        "cache-control": "private",
        "x-served-by": "www187.flickr.mud.yahoo.com",
        "vary": "Accept-Encoding",
        "content-type": "text/html; charset\u003dutf-8",
        "age": "0",
        "server": "YTS/1.20.9"
    },
    "content_len": 16092,
    "mime_type": "text/html",
    "download_size": 16092,
    "content_is_gzip": true,
    "gunzip_content_len": 71009,
    "md5": "b4da640c09a2704652bb36d7a519c71b",
    "charset_detected": "UTF-8",
    "charset_detector": 0,
    "text_simhash": 9063827461659557026,
    "parsed_as": "html",
    "content": {
        "type": "html-doc",
        "title": "AdriiiiiV\u0027s photosets on Flickr",
        "meta_tags": [
            {
                "name": "name",
                "value": "Flickr is almost certainly the best online photo management and .."
            }
        ],
        "links": [
            {
                "type": "link",
                "rel": "apple-touch-icon-precomposed",
                "text": "",
                "href": "http://www.flickr.com/apple-touch-icon.png"
            },
            {
                "type": "script",
                "text": "",
                "href": "http://l.yimg.com/g/combo/1/3.4.0?j/yui/3.4.0/yui/yui-.E.A.vWNh4\u0026j/yui/3.4.0/.FN/.FN-.E.A.vWNh4"
            }
        ]
    }
}""")
ATOM = json.loads(
    r"""{ "attempt_time": 1328296939830, "disposition": "SUCCESS", "server_ip": "74.125.53.132",
    "http_result": 200, "http_headers": { "response": "HTTP/1.1 200 OK", "content-type": "text/xml; charset\u003dUTF-8",
    "server": "GSE" }, "content_len": 523871, "mime_type": "text/xml", "download_size": 523871,
    "download_truncated": true, "md5": "6145983cbc9787251736c3a90df86e65", "charset_detected": "UTF-8",
    "charset_detector": 0, "text_simhash": 1373553292315487284, "parsed_as": "feed", "content": { "type": "atom-feed",
    "title": "Market Talk with Piranha", "link": { "type": "text/html", "href": "http://marketstockwatch.blogspot.com/",
    "rel": "alternate" }, "authors": [ { "name": "Chris Perruna",
    "url": "http://www.blogger.com/profile/00976645165089898374" } ], "generator": "Blogger", "updated": 1161695436039,
    "categories": [], "published": 1148076780000, "items": [ { "title": "My Latest Blog Entries", "description": "",
    "link": { "type": "text/html", "href": "http://marketstockwatch.blogspot.com/2007/01/my-latest-blog-entries.html",
    "rel": "alternate", "title": "My Latest Blog Entries" }, "replies": [ { "type": "application/atom+xml",
    "href": "http://marketstockwatch.blogspot.com/feeds/1858788298009572369/comments/default", "rel": "replies",
    "title": "Post Comments" }, { "type": "text/html",
    "href": "http://www.blogger.com/comment.g?blogID\u003d7434962\u0026postID\u003d1858788298009572369",
    "rel": "replies", "title": "19 Comments" } ], "self": { "type": "application/atom+xml",
    "href": "http://www.blogger.com/feeds/7434962/posts/default/1858788298009572369", "rel": "self" },
    "authors": [ { "name": "Chris Perruna", "url": "http://www.blogger.com/profile/00976645165089898374" } ],
    "content": { "type": "html-doc", "links": [ { "type": "a", "text": "www.chrisperruna.com",
    "href": "http://www.chrisperruna.com" }, { "type": "a", "text": "Intercontinental Exchange (ICE) is HOT",
    "href": "http://www.chrisperruna.com/2007/01/12/intercontinental-exchange-ice-is-hot/" } ] } } ] } }"""  # noqa: E501 - records as they were published
)
REAL: Json = {
    "attempt_time": 1328767771395,
    "disposition": "SUCCESS",
    "redirect_from": {
        "source_url": "http://www.example.org/old",
        "http_result": 0,
        "server_ip": "0.0.0.0",
        "http_headers": {},
    },
    "server_ip": "64.6.106.252",
    "http_result": 200,
    "http_headers": {"response": "HTTP/1.1 200 OK"},
    "content_len": 871,
    "mime_type": "application/pdf",
    "download_size": 871,
    "md5": "17b0df36f1c035370e99ed62fd4cc048",
    "archiveInfo": {
        "arcSourceSegmentId": 1341690147253,
        "arcFileDate": 1341708194671,
        "arcFileParition": 0,
        "arcFileOffset": 472427,
        "compressedSize": 771,
    },
}
"""In the shape of the real files: a redirect, where the page lies, and a page without a charset."""
HEAD: Json = {name: HTML[name] for name in list(HTML)[:6]} | {"http_result": 404}
"""What there is of an answer that is no 2xx."""


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(json.loads(SCHEMA.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "sample", [FAILURE, HTML, ATOM, REAL, HEAD], ids=["failure", "html", "atom", "real", "head"]
)
def test_samples(sample: Json) -> None:
    check(sample)


def without(name: str) -> Callable[[Json], object]:
    return lambda record: record.pop(name)


def put(**members: object) -> Callable[[Json], object]:
    return lambda record: record.update(members)


@tabled(
    ("sample", "change"),
    [
        (FAILURE, put(disposition="SUCCESS")),
        (FAILURE, without("failure_reason")),
        (FAILURE, put(http_result=500)),
        (HTML, without("server_ip")),
        (HTML, without("parsed_as")),
        (HTML, without("md5")),
        (HTML, without("gunzip_content_len")),
        (HTML, put(http_result=503)),
        (HTML, put(charset_detector=4)),
        (HTML, put(text_simhash=1 << 63)),
        (HTML, put(md5="x")),
        (HTML, put(content={"type": "pdf-doc"})),
        (HTML, put(other=1)),
        (REAL, lambda record: record["archiveInfo"].update(arcFilePartition=0)),
        (ATOM, lambda record: record["content"]["items"][0].update(ttl=1)),
        (ATOM, lambda record: record["content"]["items"][0]["link"].pop("href")),
        (HTML, lambda record: record["content"]["links"][0].pop("href")),
    ],
)
def test_what_is_wrong(sample: Json, change: Callable[[Json], object]) -> None:
    record = copy.deepcopy(sample)
    change(record)
    assert not is_valid(record)
