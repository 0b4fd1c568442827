"""Web archives of segments: WARC files, and what is published or needed beside them.

Begin with `webarchive.py`: it turns captures into records, and tells its listeners of each.
Whatever else is made here (an index, WAT and WET files, the page list of a WACZ) is such a
listener, so it describes the same files, whether they are written or not.

    `webarchivejobs`     the jobs: export warc, cdxj, wacz, wat, wet
    `webarchive`         writes captures as WARC records, revisits among them
    `companions`         base class of files beside WARC files, one beside each
    `watfiles`           WAT: metadata of each record as JSON
    `wetfiles`           WET: the text of pages
    `htmlfacts`          finds the head and links of an HTML page for WAT
    `languagecodes`      turns language codes of two letters into those of three
    `cdxjindex`          writes the CDXJ index of WARC files
    `surt`               makes the sort key of a URL in an index
    `waczfile`           writes a WACZ: archive, index and page list in one ZIP

Archives that exist already can be indexed and packed, too.

    `existingarchives`   makes index lines of the records of WARC and ARC files
    `repack`             puts existing WARC files into a WACZ
"""
