"""Checks whether a crawl's folders are whole and agree, and repairs what can be repaired.

Begin with `crawlcheck.py`, which goes through the databases and segments; the other modules each
check one thing and yield problems.

    `crawlcheck`   checks a whole crawl, and repairs it
    `partfiles`    checks part files: checksums, records, order, partition, indexes
    `agreement`    compares the folders of a segment, and segments with the CrawlDb
    `leftovers`    finds what killed jobs left: work folders, locks, half-done rounds
    `problems`     a problem, and the remedy for it
    `repair`       rewrites folders, removes leftovers
"""
