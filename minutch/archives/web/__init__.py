"""Web archives of segments: WARC files, and what is published along with them.

Begin with `webarchive.py`: it turns captures into records, and tells its listeners of each. An
index, WAT and WET files, and the page list of a WACZ come from such listeners, so they describe the
same files whether these are kept or not.

    `webarchivejobs`     the jobs: export warc, cdxj, wacz, wat, wet
    `webarchive`         writes captures as WARC records, revisits among them
    `companions`         files that accompany WARC files: WAT (metadata as JSON), WET (texts)
    `htmlfacts`          extracts the head and links of an HTML page for WAT
    `cdxjindex`          writes the CDXJ index of WARC files, by the sort keys of URLs (SURT)
    `existingarchives`   indexes existing WARC and ARC files, and puts them into a WACZ
"""
