"""Search without a server: the index beside a crawl, what finds pages in it, and a search page for
people.
"""
