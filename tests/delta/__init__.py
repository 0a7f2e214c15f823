"""A pipeline through a table of Delta Lake, killed and started again on the way."""
