"""A crawl's pages as a data set: rows of text in shards, with what filters ask of them.

Begin with export, which has the order of things.

    `export`                  the job: what is left out, shards, and going on after a kill
    `pages`                   which pages there are, and their texts
    `signals`                 what filters ask of texts; `quality.toml` has the filters
    `rows`                    all of it together, as a table
"""
