"""Common Crawl's data set of 2012: texts and metadata of pages, along with their raw content.

Begin with `datasetexport.py`, the job: it collects the records of each URL, and worker processes
make lines of them.

    `datasetexport`   the job: segments in, textData and metadata files out
    `metadatadoc`     makes the JSON of a fetch: success, failure, redirect; in a worker process
    `pagedocs`        makes the member `content` of an HTML page, of a feed
    `datasettables`   reads files of the data set as tables, original ones too
"""
