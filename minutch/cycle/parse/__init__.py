"""Parsing fetched content: charset, type, text, links, signature."""
