"""`make value-parity`: run Spark's own functions, and write the results into the page."""

from pyspark.sql import SparkSession

from tests.value_parity.table import MARKS, PAGE, rendered

session = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.log.level", "OFF")
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
MARKS.write(PAGE, rendered(session))
session.stop()
