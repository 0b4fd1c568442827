"""The files of a crawl as tables, read where they lie: for Polars, Arrow, pandas and SQL.

Begin with crawl, which opens one, then table.

    `crawl`, `table`, `columns`         a crawl, a table, and its typed columns; URLs as numbers
    `crawldb`, `links`                  tables of databases, and of files beside them
    `pages`, `parses`                   tables of segments
    `changes`, `moves`                  what visits found that the visit before did not
    `rights`, `statements`              what sites say about use of their pages; what words mean
    `site`, `reach`                     a row per URL; what leads to it
    `parselinks`                        the links of parses as numbers
    `predicates`, `skipping`            reads only where rows may be
    `session`                           SQL
    `results`                           rows for people and programs
    `exports`                           tables as files; links as a graph
"""
