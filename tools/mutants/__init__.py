"""Random faults planted in the package, and a search for faults that the tests miss.

mutmut and cosmic-ray plant every possible fault, and run one command for all. This program draws
faults in changed modules with a seed, and runs the tests that mirror the module. It is smaller than
the set-up of either tool.
"""
