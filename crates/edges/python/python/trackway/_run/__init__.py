"""A run, as its script, an adapter and a notebook see it."""
