"""Web archives of segments: WARC files, and what is published or needed beside them."""
