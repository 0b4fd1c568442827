"""Exports of a crawl for other programs, and imports of their files.

Most exports read fetched segments, without a CrawlDb. Begin with `captures.py`, through which all
exports read segments; then continue with the format that you need.

    `captures`            finds the segments to export, and reads them URL by URL
    `web`                 web archives: WARC with its index, WACZ, WAT, WET
    `replay`              segments made of archives, as if their pages had been fetched
    `exporters`           writes ARC files as until 2012, WARC files as Nutch's WARCExporter does

The dump commands write each page to a file of its own.

    `filedumper`          writes the content of pages
    `commoncrawldumper`   writes CBOR documents of pages, or WARC files
    `pagefiles`           names pages' files safely, collects them, and moves them to the output
"""
