"""Judges how a crawl's requests are spent in a web of traps beside honest sites: `__main__`."""
