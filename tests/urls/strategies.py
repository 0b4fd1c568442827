"""URLs for property tests: plain ones, odd ones, and what is none at all."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES = [
    *"aZ09-_.~/\\?#&=%:;@+*$!|^`{}[]<>\" '()",
    *("http:", "https:", "HTTP:", "ftp:", "file:", "jar:", "mailto:", "url:"),
    *("//", "///", "/../", "/./", "..", "/.", "#!", "index.html", ".gif"),
    *("example.org", "www.", "EXAMPLE.COM", "co.uk", "b\u00fccher.example", "xn--bcher-kva"),
    *("127.0.0.1", "[::1]", ":80", ":8080", "user:pw@"),
    *("%20", "%2e", "%2F", "%zz", "%", "%C3%A9", "\u00e9", "\u65e5\u672c", "\U0001f600"),
    *("a=b", "sid=1", "&&", "?&", "jsessionid=0A"),
    *("\u2028", "\u200b", "\x00", "\t", "\n"),
]

odd_text = st.lists(st.sampled_from(PIECES), max_size=10).map("".join)
"""Pieces of URLs in any order."""

any_text = st.text(max_size=60)

_host = st.from_regex(r"[a-z0-9]{1,8}(\.[a-z0-9]{1,8}){0,3}", fullmatch=True)
_path = st.from_regex(r"(/[A-Za-z0-9_.~-]{0,8}){0,6}", fullmatch=True)
_query = st.from_regex(r"(\?[a-z=&0-9]{0,12})?", fullmatch=True)
_scheme = st.sampled_from(["http", "https"])
plain_urls = st.tuples(_scheme, st.just("://"), _host, _path, _query).map("".join)
"""URLs as nearly all are."""

odd_urls = st.tuples(st.sampled_from(["http", "https", "ftp"]), st.just("://"), odd_text).map(
    "".join
)

urls = st.one_of(plain_urls, odd_urls, odd_text)
"""Everything that may stand where a URL is expected."""
