"""The command line: arguments, commands, and their output."""
