"""explain: why a URL was or was not fetched, and what is left to do in a crawl."""
