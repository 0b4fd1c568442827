"""WARC and ARC: reader, writer, and the records of a page."""
