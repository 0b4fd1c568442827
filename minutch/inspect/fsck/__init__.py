"""Whether a crawl's folders are whole and agree with each other, and what can be mended."""
