"""Faults planted at random in the package, and the tests that do not see them.

mutmut and cosmic-ray plant each fault there is and run one command for all; a seeded draw over what
a change touches, each fault against the tests that mirror its module, is less than either's set-up.
"""
