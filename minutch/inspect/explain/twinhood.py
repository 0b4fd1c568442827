"""Says of which page a page is a twin by its canonical link, or why the link is not believed."""

from __future__ import annotations

from minutch.conf import Configuration
from minutch.cycle.crawldb.canonical import NONE
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.twins import CANONICAL_PROPERTY, CanonicalTwins, mode_of
from minutch.inspect.explain.facts import TwinFacts
from minutch.records.crawldatum import STATUS_DB_DUPLICATE, CrawlDatum
from minutch.records.metadata import CANONICAL_KEY, TWIN_KEY
from minutch.records.parsedata import ParseData
from minutch.urls.urlkeys import url_key


def twin_facts(
    url: str, datum: CrawlDatum, parse: ParseData | None, db: CrawlDb, conf: Configuration
) -> TwinFacts | None:
    """Returns what is to be said of a page with its newest parse; None if it names no other page,
    and is marked as no twin. Raises FormatError.
    """
    metadata = datum.metadata
    marked = metadata.get_text(TWIN_KEY) if metadata else None
    marked = marked if datum.status == STATUS_DB_DUPLICATE else None
    named = None if parse is None else parse.parse_meta.get(CANONICAL_KEY)
    if named is not None and url_key(named) == url_key(url):
        named = None
    if named is None and marked is None:
        return None
    if mode_of(conf) == NONE:
        said = f"its canonical link names {named}, which dedup does not follow" if named else ""
        said = (
            f"twin of {marked}, as dedup found before, which follows none now" if marked else said
        )
        return TwinFacts(named, marked, f"{said} ({CANONICAL_PROPERTY}={NONE})")
    with CanonicalTwins(db, conf) as twins:
        decided = twins.why(url)
    original, why = (None, "") if decided.is_empty() else decided.row(0)[2:]
    if original is None:
        is_kept = marked is not None and parse is None
        text = (
            f"twin of {marked}, as dedup found before"
            if is_kept
            else (
                f"its canonical link, {named}, is not believed: {why}"
                if why
                else "it names no page any more"
            )
        )
        back = f"; it was a twin of {marked}, and comes back when dedup runs"
        return TwinFacts(named, marked, text + (back if marked and not is_kept else ""))
    name = original.decode("utf-8", "replace")
    other = db.get(name)
    is_equal = other is not None and other.signature == datum.signature
    text = f"twin of {name}, because its canonical link leads there, and both have " + (
        "the same content" if is_equal else "nearly the same text"
    )
    return TwinFacts(named, marked, text if marked == name else f"{text}; marked when dedup runs")
