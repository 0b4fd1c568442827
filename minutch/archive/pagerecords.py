"""The WARC records of a fetched page.

    response     the HTTP head as it was stored (store.http.headers), fitted to the body, and the body
    resource     the body alone, where no head was stored
    request      as it was stored (store.http.request), where that is wished
    metadata     {"contentMeta": …, "parseMeta": …} as JSON, of the parse
    conversion   the text that parsing found

Source: org.apache.nutch.tools.warc.WARCExporter (WARCReducer), tools.CommonCrawlFormatWARC.
"""

from __future__ import annotations

from minutch.archive.httpheaders import fitted_head
from minutch.archive.jsontext import gson, metadata_object, valid
from minutch.archive.warcfile import REQUEST, RESPONSE, WarcFiles
from minutch.parse.page import is_truncated
from minutch.records.content import Content
from minutch.records.metadata import IP_ADDRESS_KEY, REQUEST_KEY, RESPONSE_HEADERS_KEY
from minutch.records.parsedata import ParseData
from minutch.records.parsetext import ParseText


def write_page(files: WarcFiles, time: int, target: str, content: Content, *, can_be_cut_off: bool = True) -> str:
    """A page as a response or resource record; returns its ID. `target` is its URI, `time` when it was fetched (ms)."""
    head = fitted_head(content.metadata.first(RESPONSE_HEADERS_KEY) or "", len(content.content))
    more = {}
    address = (content.metadata.first(IP_ADDRESS_KEY) or "").strip()
    if address:
        more["WARC-IP-Address"] = address
    if can_be_cut_off and is_truncated(content):
        more["WARC-Truncated"] = "unspecified"
    if not head:
        return files.write("resource", time, target, content.content, content.content_type, payload=0, more=more)
    encoded = valid(head).encode()
    return files.write("response", time, target, encoded + content.content, RESPONSE, payload=len(encoded), more=more)


def write_request(files: WarcFiles, time: int, target: str, content: Content, page: str) -> None:
    """The request for the page with the ID `page`, if it was stored."""
    request = content.metadata.first(REQUEST_KEY) or ""
    if request.strip():
        more = {"WARC-Concurrent-To": page}
        files.write("request", time, target, valid(request).encode(), REQUEST, more=more)


def write_parse_data(files: WarcFiles, time: int, target: str, data: ParseData, page: str) -> None:
    """The metadata of a page and of its parse."""
    meta = {"contentMeta": metadata_object(data.content_meta), "parseMeta": metadata_object(data.parse_meta)}
    block = f"{gson(meta)}\r\n".encode()
    files.write("metadata", time, target, block, "application/json", more={"WARC-Refers-To": page})


def write_parse_text(files: WarcFiles, time: int, target: str, text: ParseText, page: str) -> None:
    """The text of a page."""
    block = f"{valid(text.text)}\r\n".encode()
    files.write("conversion", time, target, block, "text/plain", more={"WARC-Refers-To": page})
