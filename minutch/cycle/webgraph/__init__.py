"""The WebGraph: links between pages as databases of their own, and scores computed from them."""
