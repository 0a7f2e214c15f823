"""Random numbers for pauses, the order of brokers, and ports.

They come from the operating system. The functions of the module `random` belong to the program: a
thread of ours that called them would change what the program draws after `random.seed`. And two
processes with the same seed would pause alike.
"""

import random

CHANCE = random.SystemRandom()
