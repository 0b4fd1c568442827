"""Archives made into segments, as if their pages were fetched."""
