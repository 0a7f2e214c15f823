"""`python -m spark_kafka_source`: the command line for groups, topics and records."""

import sys

from spark_kafka_source.command_line.main import main

if __name__ == "__main__":
    sys.exit(main())
