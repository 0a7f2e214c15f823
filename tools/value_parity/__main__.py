"""`make value-parity`: run Spark's own functions, and write the results into the page."""

from pyspark.sql import SparkSession

from tools.value_parity.table import MARKS, PAGE, rendered

if __name__ == "__main__":
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
