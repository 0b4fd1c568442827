"""Keeps a database of hosts: their pages by status, home pages, scores, failed look-ups.

Read `update` first, then `statistics` and `hostrecords`.

    `store`                     opens a HostDb on disk
    `update`                    the job: updates a HostDb from a CrawlDb, looks up hosts
    `statistics`                counts the entries of each host
    `fields`                    aggregates metadata fields of pages per host
    `hostrecords`               merges old record, counts and scores into one record per host
    `dump`                      writes hosts as text
"""
