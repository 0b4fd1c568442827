"""How whole databases are worked on, and by whom: tables and engines."""
