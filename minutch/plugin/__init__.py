"""Extension points, plugin manifests, the repository that loads them, and the chains that call
them.
"""
