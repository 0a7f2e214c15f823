"""Two demos on a real broker, each a story in one module, and each counts its rows at the end.

`__main__` shows a query, its rows and its lag. `exactly_once` kills a query again and again. Both
stand on `running` (a broker, a Spark session, Ctrl-C) and on `events` (a producer that counts).
"""
