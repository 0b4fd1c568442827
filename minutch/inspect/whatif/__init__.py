"""whatif: says what another configuration would make of a crawl, without a request.

Two configurations, that of the crawl's files and the proposed one, are put to all that is known:
the CrawlDb's entries and the links of the segments. The decisions are those of the jobs. Begin with
forecast.

    `forecast`     the job: goes through links and entries; URLs that are removed, left out, renamed
                   or gained, by rule and host
    `outlook`      the next fetch list, hours until all is done, requests a day, bytes
    `prospects`    the facts, and their text
"""
