"""Odd cases of typed values, compared with Spark's own functions: `make value-parity`."""
