"""The command `schema`: the columns of a topic's values as DDL."""

import argparse

from spark_kafka_source.command_line.configuration import configuration
from spark_kafka_source.command_line.output import Output
from spark_kafka_source.consumer.infer_schema import infer_schema


def schema(arguments: argparse.Namespace, output: Output) -> int:
    """Show the schema from the registry, or a common schema of JSON records."""
    part, topic = ("key" if arguments.key else "value"), arguments.topic
    ddl = infer_schema(topic, part=part, records=arguments.count, **configuration(arguments))
    if output.as_json:
        output.document({"topic": topic, part: ddl})
    else:
        output.line(ddl)
    return 0
