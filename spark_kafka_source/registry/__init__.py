"""The schema registry: its client, which schema wrote each row, and programs to read them with."""
