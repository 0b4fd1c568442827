"""What to fetch next: selection from the CrawlDb into a new segment."""
