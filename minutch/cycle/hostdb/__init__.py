"""The HostDb: what the crawl knows about hosts, and sitemaps."""
