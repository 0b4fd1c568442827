"""Configurations by a seed: what people change in nutch-site.xml, rule files, and options of
commands.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

_BASE: Final = {
    "http.agent.name": "side",
    "http.proxy.host": "127.0.0.1",
    "http.timeout": "5000",
    "fetcher.server.delay": "0",
    "fetcher.min.crawl.delay": "0",
    "fetcher.threads.fetch": "3",
    "fetcher.max.crawl.delay": "30",
    "mapreduce.job.reduces": "1",
    "http.store.responsetime": "false",
    # Nutch counts the URL that it puts off as in progress, and waits for five minutes.
    "http.robots.503.defer.visits": "false",
    # docs/compatibility.md: as in Nutch.
    "minutch.profile": "nutch",
    "http.robots.unreachable.allow": "true",
    "parser.character.encoding.detect": "false",
    "http.store.etag": "false",
    "fetcher.exceptions.per.queue.in.row": "false",
    "parser.x.robots.tag": "false",
    "http.filter.ipaddress.include": "0.0.0.0/0,::/0",
}
_CRAWL: Final = "org.apache.nutch.crawl."
_SCORING: Final = "org.apache.nutch.scoring."
_NORMALIZERS: Final = "org.apache.nutch.net.urlnormalizer."
_EITHER: Final = ("true", "false")
_VALUES: Final[Mapping[str, Sequence[str]]] = {
    **dict.fromkeys(
        (
            "db.ignore.also.redirects", "db.ignore.external.links", "db.ignore.internal.links",
            "db.injector.overwrite", "db.injector.update", "db.score.count.filtered",
            "db.fetch.schedule.adaptive.sync_delta", "db.update.additions.allowed",
            "db.update.purge.404", "fetcher.filter.urls", "fetcher.normalize.urls", "fetcher.parse",
            "fetcher.signature", "fetcher.store.content", "generate.update.crawldb",
            "headings.multivalued", "http.robots.403.allow", "http.useHttp11",
            "linkdb.ignore.external.links", "linkdb.ignore.internal.links", "parse.filter.urls",
            "parse.normalize.urls", "parser.html.form.use_action", "parser.skip.truncated",
            "store.http.headers", "urlnormalizer.basic.host.trim-trailing-dot",
        ),
        _EITHER,
    ),
    "db.fetch.interval.default": ("3600", "2592000"),
    "db.fetch.interval.max": ("7200", "7776000"),
    "db.fetch.retry.max": ("0", "1", "3"),
    "db.fetch.schedule.class": tuple(
        f"{_CRAWL}{name}FetchSchedule" for name in ("Default", "Adaptive", "MimeAdaptive")
    ),
    "db.ignore.external.links.mode": ("byHost", "byDomain"),
    "db.max.anchor.length": ("5", "100", "-1"),
    "db.max.outlinks.per.page": ("-1", "0", "3"),
    "db.parsemeta.to.crawldb": ("metatag.description,h1",),
    "db.score.injected": ("0.5", "2"),
    "db.score.link.external": ("0.3", "1"),
    "db.score.link.internal": ("0", "0.5"),
    "db.signature.class": tuple(
        f"{_CRAWL}{name}Signature" for name in ("MD5", "TextProfile", "TextMD5")
    ),
    "db.update.max.inlinks": ("1", "10000"),
    "generate.min.interval": ("-1", "86400"),
    "generate.min.score": ("0", "0.1", "0.9"),
    "generate.restrict.status": ("db_unfetched", "db_fetched", "db_redir_temp"),
    "headings": ("h1,h2",),
    "http.redirect.max": ("0", "1", "3", "5"),
    "http.robots.redirect.max": ("0", "5"),
    "linkdb.max.anchor.length": ("4", "100"),
    "linkdb.max.inlinks": ("2", "10000"),
    "metatags.names": ("*", "description,keywords"),
    "parser.caching.forbidden.policy": ("content", "all", "none"),
    "parser.character.encoding.default": ("utf-8", "windows-1252"),
    "parser.html.NodesToExclude": ("div;class;footer",),
    "parser.html.impl": ("neko", "tagsoup"),
    "parser.html.line.separators": ("p,h1,h2,div",),
    "parser.html.outlinks.htmlnode_metadata_name": ("node",),
    "parser.html.outlinks.ignore_tags": ("img,script,link", "a", "form,iframe,frame"),
    "scoring.content.md": ("Server",),
    "scoring.db.md": ("tag",),
    "scoring.depth.max": ("1", "2", "1000"),
    "scoring.filter.order": (
        f"{_SCORING}depth.DepthScoringFilter {_SCORING}opic.OPICScoringFilter",
    ),
    "scoring.parse.md": ("description",),
    "urlmeta.tags": ("tag,x",),
    "urlnormalizer.basic.host.idn": ("toAscii",),  # through a proxy Nutch sends others as they are
    "urlnormalizer.loop.count": ("1", "3"),
    "urlnormalizer.order": (
        f"{_NORMALIZERS}basic.BasicURLNormalizer {_NORMALIZERS}regex.RegexURLNormalizer",
    ),
}  # fmt: skip
_OFTEN: Final = (
    "urlfilter-regex", "urlnormalizer-basic", "urlnormalizer-regex", "urlnormalizer-pass",
    "scoring-opic",
)  # fmt: skip
SELDOM: Final = (
    "creativecommons", "headings", "microformats-reltag", "mimetype-filter", "parse-js",
    "parse-metatags", "parsefilter-regex", "scoring-depth", "scoring-link", "scoring-metadata",
    "scoring-orphan", "subcollection", "urlfilter-domain", "urlfilter-domaindenylist",
    "urlfilter-prefix", "urlfilter-suffix", "urlfilter-validator", "urlmeta",
    "urlnormalizer-ajax", "urlnormalizer-host", "urlnormalizer-protocol",
    "urlnormalizer-querystring", "urlnormalizer-slash",
)  # fmt: skip
"""Plugins that one crawl in eight has each."""
INDEXING: Final = (
    "index-anchor", "index-basic", "index-jexl-filter", "index-links", "index-metadata",
    "index-more", "index-replace", "index-static", "indexer-csv", "indexer-dummy", "tld",
)  # fmt: skip
"""Plugins that one index in two has each; index-basic and the writers each has."""
_EACH: Final = ("index-basic", "indexer-csv", "indexer-dummy")
_INDEX_VALUES: Final[Mapping[str, Sequence[str]]] = {
    **dict.fromkeys(
        (
            "anchorIndexingFilter.deduplicate", "index.links.hosts.only",
            "index.links.inlinks.host.ignore", "index.links.outlinks.host.ignore",
            "indexer.add.domain", "indexer.delete.robots.noindex",
            "indexer.delete.skipped.by.indexingfilter", "indexer.skip.notmodified",
            "link.delete.gone", "link.ignore.internal.domain", "link.ignore.internal.host",
            "link.ignore.limit.domain", "link.ignore.limit.page",
            "moreIndexingFilter.indexMimeTypeParts",
        ),
        _EITHER,
    ),
    "generate.count.mode": ("host", "domain"),
    "generate.max.count": ("1", "3", "-1"),
    "hostdb.numeric.fields": ("_rs_",),
    "hostdb.string.fields": ("Content-Type", "tag"),
    "hostdb.url.limit": ("-1", "2"),
    "index.content.md": ("Server,Content-Type", "X-Multi,Last-Modified"),
    "index.db.md": ("tag,x", "tag"),
    "index.metadata.multivalued.fields": ("metatag.keywords", "h1"),
    "index.metadata.separator": (",", ";"),
    "index.parse.md": ("metatag.description,metatag.keywords,h1", "h1"),
    "index.replace.regexp": ("title=/Title/T/", "content=/alpha/ALPHA/2"),
    "index.static": ("a:b,c:d e", "src:one two;x=y"),
    "indexer.max.content.length": ("20", "-1", "0"),
    "indexer.max.title.length": ("5", "100", "0", "-1"),
    "link.analyze.damping.factor": ("0.5", "0.85"),
    "link.analyze.num.iterations": ("3", "10"),
    "link.score.updater.clear.score": ("0.3", "0"),
    "moreIndexingFilter.mapMimeTypes": ("false",),
}  # fmt: skip
"""Properties of the jobs that go over a crawl."""
_FIELDS: Final = (
    "id,title,content,url,host,site,domain,digest,segment,tstamp,anchor,type,contentLength,"
    "lastModified,date,cache,tag,x,a,c,src,metatag.description,metatag.keywords,h1,Server,"
    "Content-Type,X-Multi,Last-Modified,inlinks,outlinks,lang,subcollection,tld,keyword,t2,"
    "binaryContent,depth"
)
_WRITERS: Final = """<writers>
<writer id="csv" class="org.apache.nutch.indexwriter.csv.CSVIndexWriter">
<parameters><param name="fields" value="{fields}"/><param name="outpath" value="{folder}"/>
<param name="maxfieldlength" value="100000"/></parameters>
<mapping><copy>{copied}</copy><rename/><remove/></mapping></writer>
<writer id="dummy" class="org.apache.nutch.indexwriter.dummy.DummyIndexWriter">
<parameters><param name="delete" value="true"/><param name="path" value="{folder}/dummy.txt"/>
</parameters><mapping><copy/><rename/><remove/></mapping></writer></writers>
"""
_COPIED: Final = ("", '<field source="title" dest="t2,search"/>')
_FILES: Final[Mapping[str, Sequence[str]]] = {
    "adaptive-mimetypes.txt": ("text/html\t0.4\t0.2\n",),
    "domain-urlfilter.txt": ("example.com\nnet\nexample.org\n",),
    "domaindenylist-urlfilter.txt": ("other.net\n",),
    "host-urlnormalizer.txt": ("*.other.net www.other.net\n",),
    "mimetype-filter.txt": ("text/html\ntext\n",),
    "prefix-urlfilter.txt": ("# c\nhttp://www.\nhttp://s\nhttp://sub\n",),
    "protocols.txt": ("example.org\thttp\n*.other.net\thttp\n",),
    "regex-parsefilter.txt": ("foo\ttext\talpha\nbar\thtml\t<h2>\n",),
    "regex-urlfilter.txt": (
        "-^(?:file|ftp|mailto):\n-\\.(?i:gif|jpg)$\n-[?*!@=]\n-.*(/[^/]+)/[^/]+\\1/[^/]+\\1/\n+.\n",
        "-d3\n+^http://[^/]*example\n-.\n",
        "+.\n",
    ),
    "slashes.txt": ("www.example.com\t+\nexample.org\t-\n",),
    "suffix-urlfilter.txt": ("-I\n.gif\n.xml\n", "+P\n.html\n/\n", "-P\n1\n.gif\n"),
}
_OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "inject": ("", "", "-noFilter", "-noNormalize", "-overwrite", "-filterNormalizeAll"),
    "generate": ("", "", "-noFilter", "-noNorm", "-adddays 1"),
    "updatedb": ("-normalize -filter", "", "-noAdditions", "-force", "-filter"),
    "invertlinks": ("", "-noNormalize -noFilter", "-force", "-noFilter"),
    "dedup": (
        "", "-group host", "-compareOrder urlLength,score,fetchTime",
        "-group domain -compareOrder httpsOverHttp,score,urlLength,fetchTime",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class SideConfiguration:
    """What both crawls are run with."""

    changed: Mapping[str, str]
    """Properties that are drawn, `plugin.includes` among them."""
    files: Mapping[str, str]
    options: Mapping[str, Sequence[str]]
    """Options of commands."""

    @classmethod
    def drawn(cls, seed: int) -> SideConfiguration:
        """The configuration of a seed."""
        chance = random.Random(f"configuration {seed}")
        plugins = [name for name in _OFTEN if chance.random() < 0.8]
        plugins += [name for name in SELDOM if chance.random() < 1 / 8]
        if not any(name.startswith("urlnormalizer") for name in plugins):
            plugins.append("urlnormalizer-pass")
        names = sorted(chance.sample(list(_VALUES), chance.choice((2, 4, 6, 10))))
        return cls(
            {"plugin.includes": "|".join(["protocol-http", "parse-html", *plugins])}
            | {name: chance.choice(_VALUES[name]) for name in names},
            {name: chance.choice(texts) for name, texts in _FILES.items()},
            {name: chance.choice(words).split() for name, words in _OPTIONS.items()},
        )

    def indexing(self, seed: int, folder: Path) -> SideConfiguration:
        """The same for the jobs that go over a crawl; the index goes to a folder."""
        chance = random.Random(f"indexing {seed}")
        plugins = {*self.changed["plugin.includes"].split("|"), *_EACH}
        plugins |= {name for name in INDEXING if chance.random() < 0.5}
        names = sorted(chance.sample(list(_INDEX_VALUES), chance.choice((3, 6, 10))))
        writers = _WRITERS.format(fields=_FIELDS, folder=folder, copied=chance.choice(_COPIED))
        return replace(
            self,
            changed=dict(self.changed)
            | {name: chance.choice(_INDEX_VALUES[name]) for name in names}
            # index-jexl-filter is an error without one.
            | {"index.jexl.filter": chance.choice(("score>0.1", "doc.lang!='x'"))}
            | {"plugin.includes": "|".join(sorted(plugins))},
            files=dict(self.files) | {"index-writers.xml": writers},
        )

    def properties(self, port: int) -> dict[str, str]:
        """All properties, with the port of the proxy."""
        return {**_BASE, "http.proxy.port": str(port), **self.changed}

    def write(self, folder: Path) -> None:
        """Write the rule files."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            (folder / name).write_text(text, encoding="utf-8")
