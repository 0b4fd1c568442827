"""Stores the links between pages as databases of their own and computes scores from them.

Read `build` first, then `linkrank`.

    `store`         opens the databases of a graph: links from both ends, and nodes
    `rules`         decides which links of a page are kept
    `build`         makes a graph, or adds segments to it
    `linkrank`      computes scores of pages, and puts them into a CrawlDb
    `dumpers`       show pages by inlinks, outlinks or score, and the nodes that link to each
"""
