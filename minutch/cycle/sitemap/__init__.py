"""Sitemaps: the URLs that sites list, put into the CrawlDb."""
