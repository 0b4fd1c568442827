"""The report of a crawl: its files counted, and what came of it as one HTML page with plots and
tables.
"""
