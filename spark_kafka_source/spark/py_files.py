"""A warning for a package that Spark's stream runner on the driver will not find.

Spark adds py-files to the Python of the driver's program and to that of the tasks. It starts the
Python that plans a stream with the environment of the driver's JVM alone.
"""

from pathlib import Path
from typing import Any

from pyspark import SparkFiles
from pyspark.sql import SparkSession

from spark_kafka_source.logs import logger_of

logger = logger_of(__name__)

_PACKAGE_ROOT = Path(__file__).parents[2]


def warn_of_py_files(spark: SparkSession) -> None:
    """Log a warning if this package came by `--py-files` alone. A batch works even so."""
    try:
        jvm: Any = spark.sparkContext._jvm
        python_path = jvm.System.getenv("PYTHONPATH") or ""
        files = spark.conf.get("spark.submit.pyFiles", "") or ""
        own_directory = Path(SparkFiles.getRootDirectory())
    except Exception:  # A session of Spark Connect has no JVM, and its server has its own package.
        return
    if comes_by_py_files(_PACKAGE_ROOT, files, own_directory, python_path):
        logger.warning(
            "%s came by --py-files alone, so streams will fail with ModuleNotFoundError: Spark "
            "starts their Python on the driver without py-files. Install the package there, or "
            "set PYTHONPATH to the same file before you submit",
            _PACKAGE_ROOT.name,
        )


def comes_by_py_files(root: Path, files: str, own_directory: Path, python_path: str) -> bool:
    """Whether `root`, a folder or a zip on `sys.path`, is a py-file and not on `python_path`.

    `files` has the paths or URLs of Spark's option, with commas. Spark copies them to
    `own_directory`.
    """
    names = {file.rpartition("/")[2] for file in files.split(",") if file}
    is_py_file = root.name in names or own_directory in (root, *root.parents)
    return is_py_file and root.name not in {Path(path).name for path in python_path.split(":")}
