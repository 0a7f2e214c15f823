"""Options: their declaration, the kinds of their values, and the judgement of all other names."""
