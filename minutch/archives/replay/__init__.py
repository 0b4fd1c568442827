"""Archives made into segments, as if their pages had been fetched (`minutch import`).

Begin with `archiveimport.py`, the job. It hands each visit that an archive holds to the replayer,
which treats it as the fetcher treats an answer.

    `archiveimport`   the job: archives in, segments out; all of them or none
    `replayer`        decides what each visit leaves in a segment, and counts it
    `visitfilter`     decides which visits are wanted, by host, type, status and time
    `newsegments`     spreads visits to one URL over several segments, and installs these together
"""
