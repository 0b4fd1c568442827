"""A segment: one fetch list and all that came of it."""
