"""Makes entries of pages whose copy is held, with its validators."""

from __future__ import annotations

from dataclasses import replace

from minutch.records.crawldatum import STATUS_DB_FETCHED, CrawlDatum
from minutch.records.validators import VALIDATORS_KEY, Validators, seal

DUE = 1_900_000_000_000


def holding(url: str, *, tag: str = "", date: str = "") -> CrawlDatum:
    """Returns the entry of a page that was fetched with these validators."""
    datum = CrawlDatum(STATUS_DB_FETCHED, fetch_time=DUE, signature=b"s" * 16)
    stored = Validators(tag, date, 1).stored(url, b"s" * 16)
    sealed = str(stored).replace(seal(url, b"s" * 16), seal(url, b"s" * 16, DUE))
    datum.metadata[VALIDATORS_KEY] = replace(stored, value=sealed)
    return datum
