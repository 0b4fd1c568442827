"""Crawls with random configurations of a made-up web, by Nutch itself and by this crawler.

web              pages and hosts of many kinds, behind a proxy
configurations   properties, plugins, rule files and options of commands, drawn by a seed
crawls           a crawl, by either, and what it has stored
jobs             all jobs over a crawl, and what they have made of it
both             what differs
"""
