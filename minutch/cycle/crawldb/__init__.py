"""The CrawlDb: every URL known, its status, and when it is due.

Read `store` first, then `updatedb` and `transitions`, which decide what becomes of a URL.

    `store`, `partitions`                    open a CrawlDb, rewrite it partition by partition
    `matching`                               finds the rows of one key in one table or in two
    `inject`, `seeds`                        put seed lists into it
    `updatedb`, `segmentfiles`, `updates`    merge what segments hold on each URL
    `transitions`, `updatesteps`             decide a URL's new status, and explain it
    `scoring`                                calls the scoring filters
    `schedule`, `adaptive`, `adaptiverules`  decide when a page is due again
    `simulation`                             tries an adaptive schedule on one page
    `mergedsegments`                         tells whether a segment has been merged
    `mergedb`                                merges CrawlDbs
    `dedup`, `duplicates`, `nearduplicates`  mark pages with equal or similar content
    `pagesignatures`, `duplicategroups`      read signatures, and show the groups they make
    `dump`, `dumpformats`, `stats`           write entries as text, and count them
    `crawlcomplete`, `domainstats`           count pages by host or domain
    `protocolstats`, `groupcounts`           count pages by status code; the counting itself
"""
