"""A crawl's pages as a data set: rows of text in shards, with what filters ask of them.

Begin with export, which has the order of things.

    `export`                  the job: what is left out, shards, and going on after a kill
    `signals`                 what filters ask of texts; `quality.toml` has the filters
    `rows`                    which pages there are, and all of it together, as a table
"""
