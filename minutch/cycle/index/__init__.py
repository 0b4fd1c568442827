"""Documents for a search engine, and their writers."""
