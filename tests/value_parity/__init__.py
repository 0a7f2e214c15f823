"""The odd cases of typed values beside Spark's own functions: `make value-parity`."""
