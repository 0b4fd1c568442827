"""Reads archives: the records of WARC and ARC files, damaged or not, and the visits in them.

Read it from the bytes up: a source gives bytes, the reader cuts them into records, and a visit is
an answer with its request. Indexes lead to single records.

    `bytesource`        reads plain files; base class of sources of members
    `membersources`     read gzip members, zstd frames, and go on behind damage
    `recordheads`       the grammars of WARC and ARC
    `recordreader`      cuts the bytes into records
    `visits`            takes archived HTTP answers apart, and joins records to visits
    `archivefiles`      finds archives on disk, by their first bytes, and opens them
    `visitindex`        an SQLite index of visits, how it is kept and asked
    `archiveprotocol`   asks protocol-archive what an archived answer means
"""
