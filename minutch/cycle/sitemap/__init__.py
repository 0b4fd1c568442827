"""Sitemaps: the URLs that sites list themselves, put into the CrawlDb.

Begin with processor, the job; sitemapfetch brings the files.

    `processor`                       the job
    `sitemapfetch`                    fetches sitemaps, also those that robots.txt names
    `sitemapfile`, `sitemapxml`       reads them: text, XML, feeds, indexes
    `sitemapurls`, `sitemapdates`     the URLs they list, and their dates
    `sitemapentries`                  decides what these become in the CrawlDb
    `listing`                         keeps what sitemaps list, for questions
"""
