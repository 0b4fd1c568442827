"""Segments of Nutch 0.4 to 0.7, read and written.

Begin with `translation.py`, which says how old and new records correspond; their layouts are in
`minutch/records/legacy/`.

    `oldsegment`     opens an old segment on disk
    `translation`    makes today's records of old ones, and old ones of today's
    `legacyimport`   the job behind `minutch import legacy`
    `legacyexport`   the job behind `minutch export legacy`
"""
