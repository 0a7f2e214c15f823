"""The encoding of columns without a registry."""

import pyarrow as pa

from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.typed import TypedWriteConfig, plan_writes


def test_the_ddl_of_columns_has_no_name_and_is_no_hindrance() -> None:
    options = {"value.format": "json", "value.schema": "id BIGINT"}
    config = TypedWriteConfig.from_settings(Settings(options))
    column = pa.array([{"id": 1}, None], pa.struct([("id", pa.int64())]))
    (write,) = plan_writes(config, {"value": column.type}, "events").values()
    assert write.encode(column).to_pylist() == [b'{"id":1}', None]
