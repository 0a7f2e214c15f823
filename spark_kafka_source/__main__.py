"""`python -m spark_kafka_source`: groups, topics and records, for people on call."""

import sys

from spark_kafka_source.command_line.main import main

if __name__ == "__main__":
    sys.exit(main())
