"""Exactly-once writes by many tasks: one transaction for each task, and one decision for all.

`driver`, `settling`, `slots` and `worker` have the protocol, without IO. `committing` and `worker`
are its two sides. `docs/exactly-once.md` has its guarantees and their limits.
"""
