"""A crawl as files for other programs, and such files made into segments again.

Everything here reads segments that are fetched, mostly without their CrawlDb. Begin with
`captures.py`, through which all exports read segments; then take the format that you need.

    `captures`            finds the segments to export, and reads them URL by URL
    `web`                 web archives: WARC with its index, WACZ, WAT, WET
    `replay`              archives made into segments, as if their pages had been fetched
    `dataset`             texts and metadata as in Common Crawl's data set of 2012
    `legacy`              segments of Nutch 0.4 to 0.7: read, and written
    `arcexporter`         ARC files, as the Internet Archive and Common Crawl wrote until 2012
    `warcexporter`        WARC files as Nutch's WARCExporter writes them

The dump commands write each page as a file of its own.

    `filedumper`          pages as they came
    `commoncrawldumper`   pages as CBOR documents, or all of them in WARC files
    `commoncrawlformat`   makes the CBOR document of a page
    `pagefiles`           puts files into the output folder, all at once at the end
    `pagenames`           makes safe file names of URLs
    `mediatypes`          chooses and counts pages by media type
"""
