"""The live page: what a running crawl or fetch is at, figures for Prometheus, and pause, resume and
stop.
"""
