"""crawl: rounds of the whole cycle, what is left of them, and what people see of it."""
