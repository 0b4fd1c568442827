"""What the command line offers beside the jobs: help, completion, a folder to begin with, locks."""
