"""`minutch export FORMAT`, a module for each format."""
