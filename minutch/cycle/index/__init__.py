"""Documents for search engines: made of segments, CrawlDb and LinkDb, and sent by writers.

indexing is the job; rangeindexer runs for each range of keys, in a process of its own.

    `indexing`, `clean`                   the jobs
    `inputs`, `misplaced`                 what a job reads, and records that lie in other parts
    `rangeindexer`, `indexrules`          one range; what becomes of a URL in the index
    `writers`, `exchanges`, `fieldmapping`    where documents go, and under which field names
"""
