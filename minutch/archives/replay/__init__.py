"""Segments made of archives, as if their pages had been fetched (`minutch import`).

Begin with `archiveimport.py`, the job. It passes each visit in an archive to the replayer, which
treats it as the fetcher treats a response.

    `archiveimport`   the jobs: archives in, segments out; all of them or none
    `replayer`        decides which records each visit results in, and counts it
    `visitfilter`     decides which visits are wanted, by host, type, status and time
    `newsegments`     distributes visits to one URL over segments, and installs these together
"""
