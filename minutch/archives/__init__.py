"""Fetched pages as files for other programs: plain files, CBOR, JSON, WARC."""
