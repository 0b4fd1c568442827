"""`minutch import FORMAT`, a module for each kind of format."""
