"""Makes documents from segments, CrawlDb and LinkDb, and sends them to search engines.

Read `indexing` first, which is the job, then `rangeindexer`, which runs for each range of keys.

    `indexing`                      the jobs
    `indexchecker`                  shows the document of one page
    `inputs`                        finds the files to read, and records outside of their range
    `rangeindexer`                  reads the records of a range and makes documents of them
    `indexrules`                    decides whether a URL is indexed, deleted or skipped
    `writers`                       decides which index writers a document goes to, encodes it,
                                    and sends it
"""
