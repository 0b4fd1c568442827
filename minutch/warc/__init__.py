"""WARC and ARC files: writers, the records that a page becomes, and a reader.

Begin with `warcfile.py`, the container, then `pagewriter.py`, which fills it. The fetcher writes
through both, so this folder is below the cycle.

    `warcfile`      writes WARC records into files of limited size
    `arcfile`       writes ARC records into files of limited size
    `pagewriter`    makes response, revisit, request, metadata and conversion records of a page
    `httpheaders`   fits a stored HTTP head to the body, or makes one
    `warcinfo`      makes the fields that describe the crawler
    `targeturi`     makes a URI of a page's URL
    `pagetimes`     reads the times that a page carries
    `jsontext`      writes JSON as Jackson and Gson do
    `localhost`     finds the name and address of this machine
    `reading`       reads archives of all kinds, damaged ones too
"""
