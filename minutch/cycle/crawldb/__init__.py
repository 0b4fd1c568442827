"""The CrawlDb: every URL known, its status, and when it is due.

Read `store` first, then `updatedb` and `transitions`, which decide what becomes of a URL.

    `store`, `partitions`                    open a CrawlDb, rewrite it partition by partition
    `matching`                               finds the rows of one key in one table or in two
    `inject`, `seeds`                        put seed lists into it
    `updatedb`, `updates`                    merge what segments hold on each URL
    `transitions`, `updatesteps`             decide a URL's new status, and explain it
    `scoring`                                calls the scoring filters
    `schedule`, `adaptive`, `fresh`          decide when a page is due again
    `habits`                                 learns how a page changes, for `fresh`
    `mergedb`                                merges CrawlDbs
    `dedup`, `duplicates`                    mark pages with equal or similar content
    `canonical`, `twins`                     which pages are twins by their canonical links
    `dump`, `stats`                          write entries as text, and count them
    `groupcounts`                            counts pages by host, domain or status code
"""
