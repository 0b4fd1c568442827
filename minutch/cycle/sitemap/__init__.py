"""Sitemaps: the URLs that sites list themselves, put into the CrawlDb.

Begin with processor, the job; sitemapfetch brings the files.

    `processor`                       the job, and what it keeps for questions
    `sitemapfetch`                    fetches sitemaps, also those that robots.txt names
    `sitemapfile`                     reads them: text, XML, feeds, indexes
    `sitemapurls`                     the URLs they list, and their dates
    `sitemapentries`                  decides what these become in the CrawlDb
"""
