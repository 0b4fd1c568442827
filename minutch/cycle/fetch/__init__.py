"""Fetching a segment: queues, politeness, protocols, and a log that loses nothing."""
