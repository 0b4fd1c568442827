"""Reads archives: the records of WARC and ARC files, damaged or not, and the visits in them.

Read it from the bytes up: a source gives bytes, the reader cuts them into records, and a visit is
an answer with its request. Indexes lead to single records.

    `bytesource`                    reads plain files; base class of sources of members
    `gzipsource`, `zstdsource`      read gzip members, zstd frames, and go on behind damage
    `recordreader`                  cuts the bytes into records, by a grammar
    `warcrecords`, `arcrecords`     the grammars of WARC and ARC
    `httpmessage`                   takes an archived HTTP answer apart
    `visits`                        joins records to visits
    `archivefiles`                  finds archives on disk, by their first bytes, and opens them
    `cdxjlines`                     reads CDXJ and CDX lines
    `cdxjlookup`                    finds the archives that these lines lead to
    `visitindex`, `archiveindex`    an SQLite index of visits, and how it is kept and asked
    `archiveprotocol`               asks protocol-archive what an archived answer means
"""
