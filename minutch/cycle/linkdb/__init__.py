"""The LinkDb: for every URL the links that point to it.

Read `rules` first, which decides about single links, then `invertlinks`.

    `store`        opens a LinkDb on disk
    `rules`        decides which links count, and under which URLs
    `invertlinks`  the jobs: adds the links of segments, merges LinkDbs
    `dump`         shows links as text
"""
