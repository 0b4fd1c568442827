"""The readers of the configuration's files: rules, mappings, writers, accounts; see `readers`.

Each file is damaged in a conf/ of its own, and read by what reads it in a job. They are the
operator's, but written by hand, and often somebody else's that was copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from minutch.conf import Configuration
from minutch.conf.configuration import HOME
from minutch.cycle.crawldb.adaptive import read_host_bounds, read_mime_rates
from minutch.cycle.index.writers import Exchanges, WriterChain
from minutch.cycle.parse.dispatch import ParserFactory
from minutch.cycle.parse.mime import MimeUtil
from minutch.errors import MinutchError, PluginError
from minutch.inspect.audit.findings import rules_of
from minutch.plugin.chains import (
    IndexingFilters,
    URLExemptionFilters,
    URLFilters,
    URLNormalizers,
)
from minutch.plugin.manifest import read_manifest
from minutch.plugin.protocolfactory import ProtocolFactory
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.urls.domains import _list as suffix_list
from minutch.urls.patterns import Doubts
from plugins.lib_http.credentials import Credentials
from plugins.lib_http.settings import HttpSettings
from tests.faults.readers import ENCODINGS, XML, Reader, from_file
from tests.support.golden import PROJECT
from tests.support.pages import URL, content, parse_all

LINES: Final = (
    "+ - * . ^ $ ( ) [ ] { } \\\\ | ? # \\n \\r \\t \\x20 , ; : / = a a.b http:// .* (a*)*"
    " \\\\1 \\\\p{L} \\xc3\\xa9 \\xff \\xef\\xbb\\xbf \\0 0 1 -1 1e999 NaN 99999999999999999999"
)
TREE: Final = f"{XML} {LINES} name= value= id= class= <param\\x20name='a'\\x20value='b'/>"
URLS: Final = ("http://a.b/c.html?d=1", "https://www.example.org/", "ftp://x/", URL)


@dataclass(frozen=True)
class Rules:
    """A file of the configuration, and what reads it."""

    file: str
    use: Callable[[Configuration], object]
    sample: str = ""
    """What the shipped file does not show."""
    tokens: str = LINES
    plugins: str = "urlfilter-validator"
    properties: Mapping[str, str] = field(default_factory=dict)


def _filter(conf: Configuration) -> object:
    return [URLFilters(conf).filter(url) for url in URLS]


def _normalize(conf: Configuration) -> object:
    return [URLNormalizers(conf).normalize(url) for url in URLS]


def _index(conf: Configuration) -> object:
    """A document as the indexing filters leave it."""
    filters = IndexingFilters(conf)
    parse = parse_all(content(b"<title>t</title>words", modified="Sun, 06 Nov 1994"), conf)[URL]
    return filters.filter(NutchDocument(), parse, URL, CrawlDatum(), None)


def _parse(conf: Configuration) -> object:
    found = parse_all(content(b"<title>t</title>words"), conf)
    return [document.data.to_bytes() for _, document in found.items()]


def _writers(conf: Configuration) -> object:
    chain = WriterChain.from_conf(conf)
    return chain.describe()


_WRITER: Final = (
    '<writers><writer id="a" class="org.apache.nutch.indexwriter.csv.CSVIndexWriter"><parameters>'
    '<param name="fields" value="id,title"/></parameters><mapping><copy><field source="a"'
    ' dest="b,c"/></copy><rename><field source="d" dest="e"/></rename><remove><field source="f"/>'
    "</remove></mapping></writer></writers>"
)
_TIKA: Final = (
    '<mime-info><mime-type type="a/b"><alias type="c/d"/><glob pattern="*.e" isregex="true"/>'
    '<magic priority="50"><match value="0x89504e" type="string" offset="0:64" mask="0xffff">'
    '<match value="abc\\000" type="unicodeLE" offset="1"/></match></magic>'
    '<root-XML localName="x" namespaceURI="y"/><sub-class-of type="text/plain"/></mime-type>'
    "</mime-info>"
)
_ACCOUNTS: Final = (
    '<auth-configuration><credentials username="a" password="b"><default realm="c"/>'
    '<authscope host="d" port="80" realm="e" scheme="basic"/></credentials>'
    '<credentials authMethod="formAuth" loginUrl="http://a/l" loginFormId="f" loginRedirect="true">'
    '<loginPostData><field name="u" value="v"/></loginPostData><additionalPostHeaders>'
    '<field name="h" value="i"/></additionalPostHeaders><removedFormFields><field name="g"/>'
    "</removedFormFields></credentials></auth-configuration>"
)
_FILES: Final = (
    Rules("regex-urlfilter.txt", _filter, plugins="urlfilter-regex"),
    Rules(
        "automaton-urlfilter.txt", _filter, "+a[b-d]{1,3}(~e&@)\n", plugins="urlfilter-automaton"
    ),
    Rules("suffix-urlfilter.txt", _filter, "+PI\n.gif\n", plugins="urlfilter-suffix"),
    Rules("prefix-urlfilter.txt", _filter, "http://a\n", plugins="urlfilter-prefix"),
    Rules("domain-urlfilter.txt", _filter, "a.b\norg\n", plugins="urlfilter-domain"),
    Rules("domaindenylist-urlfilter.txt", _filter, "a.b\n", plugins="urlfilter-domaindenylist"),
    Rules(
        "fast-urlfilter.txt",
        _filter,
        "Host a.b\n  DenyPath /c\n  DenyPathQuery /d?e=.*\nDomain .\n  DenyPath .*\n",
        f"{LINES} Host\\x20 Domain\\x20 DenyPath\\x20 DenyPathQuery\\x20 \\n\\x20\\x20",
        plugins="urlfilter-fast",
    ),
    Rules(
        "db-ignore-external-exemptions.txt",
        lambda conf: URLExemptionFilters(conf).is_exempted("http://a/", "http://b/"),
        "+.*\n",
        plugins="urlfilter-ignoreexempt",
    ),
    Rules(
        "regex-normalize.xml",
        _normalize,
        "",
        f"{TREE} <regex> <pattern> <substitution> $1",
        ("urlnormalizer-regex"),
    ),
    Rules("host-urlnormalizer.txt", _normalize, "a.b c.d\n*.e f\n", plugins="urlnormalizer-host"),
    Rules("slashes.txt", _normalize, "a.b\t+\n", plugins="urlnormalizer-slash"),
    Rules("protocols.txt", _normalize, "a.b\thttps\n", plugins="urlnormalizer-protocol"),
    Rules(
        "subcollections.xml",
        _index,
        tokens=f"{TREE} <subcollection> <name> <whitelist> <blacklist> <key>",
        plugins="subcollection|parse-html",
    ),
    Rules(
        "mime-types.txt",
        lambda conf: [MimeUtil(conf).resolve(None, url, b"%PDF-<html>") for url in URLS],
    ),
    Rules(
        "tika-mimetypes.xml",
        lambda conf: [MimeUtil(conf).resolve(None, url, b"%PDF-<html>") for url in URLS],
        _TIKA,
        f"{TREE} type= offset= mask= pattern= 0x <match\\x20 <magic\\x20 <glob\\x20 big32 host16",
        properties={"mime.types.file": "tika-mimetypes.xml"},
    ),
    Rules("doubtful-names.txt", lambda conf: Doubts(conf.read_resource("doubtful-names.txt"))),
    Rules("adaptive-mimetypes.txt", lambda conf: read_mime_rates(conf, "adaptive-mimetypes.txt")),
    Rules(
        "adaptive-host-specific-intervals.txt",
        lambda conf: read_host_bounds(conf, 60, 1e9),
        "a.b default 100\nc.d 1 2\n",
    ),
    Rules(
        "index-writers.xml",
        _writers,
        _WRITER,
        f"{TREE} <writer\\x20 <parameters> <mapping> <copy> <field\\x20source='a'/> dest=",
        plugins="indexer-(csv|dummy|solr|local|rabbit|kafka|opensearch-1x)",
    ),
    Rules(
        "exchanges.xml",
        Exchanges.from_conf,
        '<exchanges><exchange id="a" class="org.apache.nutch.exchange.jexl.JexlExchange"><writers>'
        '<writer id="b"/></writers><params><param name="expr" value="doc.id == 1"/></params>'
        "</exchange></exchanges>",
        f"{TREE} <exchange\\x20 <writers> == && doc.getFieldValue('a')",
        plugins="exchange-jexl",
    ),
    Rules("cookies.txt", HttpSettings.from_conf, "a.b\tc=d\n"),
    Rules(
        "agents.txt",
        HttpSettings.from_conf,
        "a/1 (b)\n",
        properties={"http.agent.rotate": "true"},
    ),
    Rules(
        "httpclient-auth.xml",
        Credentials.from_conf,
        _ACCOUNTS,
        f"{TREE} <credentials\\x20 <authscope\\x20 <default/> port= host= realm= scheme=",
    ),
    Rules(
        "host-protocol-mapping.txt",
        lambda conf: [ProtocolFactory(conf).get_protocol(url) for url in URLS[:2]],
        "a.b\torg.apache.nutch.protocol.http.Http\nprotocol:http\tprotocol-http\n",
        plugins="protocol-http",
    ),
    Rules(
        "parse-plugins.xml",
        lambda conf: ParserFactory(conf).parsers("text/html"),
        tokens=f"{TREE} <mimeType\\x20name='*'> <plugin\\x20id='parse-html'/> <aliases> <alias",
        plugins="parse-html",
    ),
    Rules(
        "contenttype-mapping.txt",
        _index,
        "web page\ttext/html\tapplication/xhtml+xml\n",
        plugins="index-more|parse-html",
        properties={"moreIndexingFilter.mapMimeTypes": "true"},
    ),
    Rules(
        "date-styles.txt",
        _index,
        "yyyy-MM-dd'T'HH:mm:ss.SSSXXX\nEEE, d MMM yyyy\n",
        f"{LINES} yyyy MM dd HH mm ss EEE ' zzz X",
        "index-more|parse-html",
    ),
    Rules(
        "mimetype-filter.txt",
        _index,
        "+\nimage\n",
        plugins="mimetype-filter|parse-html",
        properties={"mimetype.filter.file": "mimetype-filter.txt"},
    ),
    Rules(
        "regex-parsefilter.txt",
        _parse,
        "a\thtml\tb.*\nc\ttext\td\n",
        f"{LINES} html text \\t",
        "parse-html|parsefilter-regex",
    ),
    Rules(
        "training.txt",
        _parse,
        "1\tgood words here\n0\tother bad words\n",
        plugins="parse-html|parsefilter-naivebayes",
        properties=dict.fromkeys(
            ("parsefilter.naivebayes.trainfile", "parsefilter.naivebayes.wordlist"), "training.txt"
        ),
    ),
    Rules(
        "audit-rules.toml",
        rules_of,
        "[[rule]]\nid = 'a'\nseverity = 'error'\nsays = 'b'\nsql = 'SELECT 1'\nwhere = {c = 'd'}\n",
        f'{LINES} [[rule]] id severity says sql where {{ }} \' " """ true 1979-05-27',
    ),
)


_ENCODED: Final = tuple(
    f"<?xml version='1.0' encoding='{name}'?><a/>".encode() for name in ENCODINGS
)


def _reader(rules: Rules) -> Reader:
    @cache
    def conf() -> Configuration:
        values = {"plugin.includes": rules.plugins, "http.agent.name": "x", **rules.properties}
        return Configuration.load([], overrides=values)

    def read(path: Path) -> object:
        try:
            return rules.use(conf().in_folders(HOME, [path.parent, *conf().conf_dirs]))
        except PluginError as error:  # which is what an unexpected exception in a plugin becomes
            cause = error.__cause__
            if cause is None or isinstance(cause, MinutchError | OSError):
                raise
            raise cause from None

    shipped = PROJECT / "conf" / rules.file
    texts = [rules.sample.encode()] if rules.sample else []
    if shipped.is_file():
        texts.append(shipped.read_bytes())
    once = (b"\xff\xfe\0", *_ENCODED) if rules.file.endswith(".xml") else (b"\xff\xfe\0",)
    return Reader(from_file(read, rules.file), lambda: texts, rules.tokens, most=1 << 16, once=once)


CONFIGURATION: Final[Mapping[str, Reader]] = {
    **{rules.file: _reader(rules) for rules in _FILES},
    "plugin.xml": Reader(
        from_file(lambda path: read_manifest(path.parent), "plugin.xml"),
        lambda: [(PROJECT / "plugins/parse_html/plugin.xml").read_bytes()],
        f"{TREE} <plugin <extension <implementation <requires> <import",
        once=_ENCODED,
    ),
    "effective_tld_names.dat": Reader(
        from_file(lambda path: suffix_list(path).find("a.b.co.uk"), "list"),
        lambda: ["com\n*.ck\n!www.ck\n// c\nco.uk\nмкд\n".encode()],
        LINES,
        once=("é.".encode() * 40 + b"com",),
    ),
}
