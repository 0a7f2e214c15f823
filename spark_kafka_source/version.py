"""The package's version. pyproject.toml reads it from here."""

VERSION = "0.3.0"
