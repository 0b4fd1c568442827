"""The LinkDb: for every URL the links that point to it."""
