"""The HostDb: what the crawl knows about each host.

Read `update` first, then `statistics` and `hostrecords`.

    `store`                     opens a HostDb on disk
    `update`                    brings what the CrawlDb knows of hosts into it
    `statistics`, `processors`  count the entries of a host
    `fields`                    sums up metadata fields of pages per host
    `hostrecords`               makes one record of all that is known of a host
    `checks`, `lookups`         decide which hosts are looked up in the DNS, and do it
    `tophosts`                  reads scores of hosts from text files
    `variables`                 gives expressions the values of a host
    `dump`                      shows hosts as text
"""
