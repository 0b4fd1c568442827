"""WARC and ARC files: writers, the records that a page becomes, and a reader.

Begin with `warcfile.py`, the container, then `pagewriter.py`, which fills it. The fetcher writes
through both, so this folder is below the cycle.

    `warcfile`      writes WARC and ARC records into files of limited size; says who wrote them
    `pagewriter`    makes response, revisit, request, metadata and conversion records of a page
    `jsontext`      writes JSON as Jackson and Gson do
    `reading`       reads archives of all kinds, damaged ones too
"""
