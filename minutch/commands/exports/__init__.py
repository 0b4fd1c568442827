"""The formats of `minutch export`: each reads its options and calls one job.

A module has what a command has: USAGE, FLAGS and `run(args, context) -> exit code`.
`minutch/commands/formats.py` lists them.

    `segmentargs`         reads the options that exports of segments share
    `warc`, `wacz`        web archives of segments
    `cdxj`, `wat`, `wet`  what is published beside WARC files
    `arc`                 ARC files
    `commoncrawl`         Common Crawl's data set of 2012
    `legacy`              segments of Nutch 0.4 or 0.5
    `parquet`             the tables of a crawl
    `edges`, `graphml`    the links of a crawl
"""
