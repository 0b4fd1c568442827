"""The cycle: the stores, decisions and jobs of a crawl, in the order in which they run.

A folder never imports one that comes later in this list; read them in the order of the flow, with
`segment` and `crawldb` first: they hold what all others read and write.

    `segment`      one fetch list and all that came of it, on disk
    `parse`        text, metadata and links of fetched pages
    `owntext`      what of a page is its own, by the other pages of its site
    `crawldb`      every URL known, its status and when it is due; inject, updatedb, dedup
    `linkdb`       the links that point to each page; invertlinks
    `fetch`        queues, politeness, and a log that loses nothing
    `hostdb`       what is known of each host
    `fetchlist`    generate: what is due goes into a new segment
    `index`        documents for search engines, and what sends them
    `webgraph`     links as a graph, and scores from it
    `sitemap`      URLs that sites list themselves
    `crawl`        rounds of all these steps
"""
