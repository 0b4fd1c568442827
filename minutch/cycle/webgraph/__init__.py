"""Stores the links between pages as databases of their own and computes scores from them.

Read `build` first, then `linkrank`.

    `store`         opens the databases of a graph: links from both ends, and nodes
    `rules`         decides which links of a page are kept
    `build`         makes a graph, or adds segments to it
    `settings`      holds what all jobs are set to: partitions, compression, memory
    `csr`           holds the links as numbers, for computing
    `linkrank`      computes scores of pages
    `scoreupdater`  puts the scores into a CrawlDb
    `nodedumper`    shows pages by inlinks, outlinks or score
    `linkdumper`    makes a database of the nodes that link to each page
"""
