"""Checks whether a crawl's folders are whole and agree, and repairs what can be repaired.

Begin with `crawlcheck.py`, which goes through the databases and segments; the other modules each
check one thing and yield problems.

    `crawlcheck`   checks a whole crawl, and repairs it: rewrites folders, removes leftovers
    `partfiles`    checks part files: checksums, records, order, partition, indexes
    `problems`     a problem and its remedy; segments that disagree, leftovers of killed jobs
"""
