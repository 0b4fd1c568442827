"""Properties of nutch-default.xml that this version reads but does not act on."""

INERT: frozenset[str] = frozenset()
