"""The data set that Common Crawl made of its crawl of 2012: texts and metadata of pages, beside
their raw content.
"""
