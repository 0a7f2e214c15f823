"""Records with typed keys and values: what their bytes are decoded by, and what is bad of them."""
