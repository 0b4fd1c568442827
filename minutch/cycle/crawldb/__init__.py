"""The CrawlDb: every URL known, its status and when it is due."""
