"""Web archives of segments: WARC files, and what is published along with them.

Begin with `webarchive.py`: it turns captures into records, and tells its listeners of each. An
index, WAT and WET files, and the page list of a WACZ come from such listeners, so they describe the
same files whether these are kept or not.

    `webarchivejobs`     the jobs: export warc, cdxj, wacz, wat, wet
    `webarchive`         writes captures as WARC records, revisits among them
    `companions`         base class of files that accompany WARC files
    `watfiles`           WAT: metadata of each record as JSON
    `wetfiles`           WET: the text of pages
    `htmlfacts`          extracts the head and links of an HTML page for WAT
    `languagecodes`      converts language codes of two letters to three
    `cdxjindex`          writes the CDXJ index of WARC files
    `surt`               makes the sort key of a URL in an index
    `waczfile`           writes a WACZ: archive, index and page list in one ZIP

Existing archives can be indexed and packed, too.

    `existingarchives`   makes index entries of the records of WARC and ARC files
    `repack`             puts existing WARC files into a WACZ
"""
