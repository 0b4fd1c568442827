"""Segments made of archives, as if their pages had been fetched (`minutch import`).

Begin with `archiveimport.py`, the job. It passes each visit in an archive to the replayer, which
treats it as the fetcher treats a response.

    `archiveimport`   the jobs: archives in, segments out; all of them or none
    `replayer`        which visits are wanted, which records each results in, and in which segment
"""
