"""Segments of Nutch 0.4 to 0.7, made into today's and written from them."""
