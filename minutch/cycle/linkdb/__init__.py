"""The LinkDb: for every URL the links that point to it.

Read `rules` first, which decides about single links, then `invertlinks` and `build`.

    `store`        opens a LinkDb on disk
    `rules`        decides which links count, and under which URLs
    `outlinks`     reads the links of parsed pages, turned round
    `build`        sorts links by URL, merges them into records and writes them
    `invertlinks`  adds the links of segments
    `mergelinkdb`  merges LinkDbs
    `dump`         shows links as text
"""
