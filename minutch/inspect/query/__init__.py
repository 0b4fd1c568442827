"""The files of a crawl as tables, read where they lie: for Polars, Arrow, pandas and SQL.

Begin with crawl, which opens one, then table.

    `crawl`, `table`, `columns`                     a crawl, a table, and its typed columns
    `crawldb`, `hosts`, `links`, `duplicates`       tables of databases
    `segments`, `pages`, `parses`, `ranges`         tables of segments
    `ids`                                           URLs as numbers
    `site`, `outcomes`, `linkreach`, `sitemaps`     a row per URL, of all of them; sitemaps
    `checks`                                        links that are no pages of the crawl
    `graph`, `graphexport`, `parquetexport`         links as a graph; exports
    `predicates`, `skipping`                        reads only where rows may be
    `session`, `prompt`                             SQL, and a prompt for it
    `results`, `parquet`                            rows for people and programs
"""
