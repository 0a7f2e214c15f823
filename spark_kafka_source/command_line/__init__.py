"""The command line: arguments, commands, and how they show what they find."""
