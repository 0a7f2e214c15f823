"""Consumer groups: who reads which partitions.

`assignors` divides the partitions among the members, on the one whom the coordinator chose.
"""
