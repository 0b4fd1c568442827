"""java.util.regex on top of Python's `regex`: parsed, checked for its cost, written out again."""
