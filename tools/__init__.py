"""Programs that are run by hand or by `make`, and what they share with the tests."""
