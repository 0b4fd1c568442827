"""What a URL is made of, and what robots.txt says about it."""
