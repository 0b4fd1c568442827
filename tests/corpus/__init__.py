"""A corpus of pages, feeds, robots.txt files and sitemaps, each with the right answer and the
standard that says so, through the commands of a crawl.

    `data`           the cases: TOML files that are read and added to by hand
    `cases`          reads them
    `site`           serves them all: a proxy on loopback, so that each has hosts of its own
    `crawled`        crawls them once in each of its WAYS
    `test_corpus`    holds what came out against the answers

A case has a `name`, `by` (the authority: standard and section), a body and answers. `body` is text,
encoded in `in` (UTF-8 if it is missing); `raw` are bytes, U+00E9 standing for E9. `type` is the
Content-Type, `headers` are more of them, `status` is 200 if it is missing.

    [[page]]       at http://pages.example/d/NAME, its answers `links` (in order), `title`, `text`,
                   `charset` (Java's name in lower case), `redirect` ("": none); `links` beginning
                   with a slash are of that host
    [[robots]]     a robots.txt, its answers `allowed` and `refused`: paths at http://NAME.example;
                   `delay`: its Crawl-delay in ms, -1 for none. `fill` bytes of comments precede it
    [[sitemap]]    at http://NAME.example/PATH (/sitemap.xml if `path` is missing), its answer
                   `urls`; `more` are other files of the host. `gzip` compresses it

URLs are those of the WHATWG URL standard. Where java.net.URL, and so Nutch, spells them otherwise
(RFC 3986 knows no backslashes, removes no blanks, encodes nothing), `default` is a table of the
answers without parser.html.outlinks.whatwg; `loads` one of those with
parser.html.outlinks.browser, which other cases are not held against.
"""
