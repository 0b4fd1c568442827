"""Commands that Nutch runs by the names of their classes."""
