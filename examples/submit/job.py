"""A job for `spark-submit`: windows of the readings in one folder, written to another as Parquet.

spark-submit --py-files factor_windows.zip examples/submit/job.py /data/readings /data/windows
"""

import argparse
from pathlib import Path

from pyspark.sql import SparkSession

import factor_windows as fw

query = fw.Query(
    time="ts",
    keys=["device"],
    windows=[fw.tumbling("20 minutes"), fw.tumbling("1 hour"), fw.hopping("6 hours", "1 hour")],
    aggregates=["min(temperature) AS low", "avg(temperature) AS mean"],
)


def main() -> None:
    """Read, compute and write."""
    parser = argparse.ArgumentParser(description="Windows of the readings in a folder, as Parquet.")
    parser.add_argument("input", help="Parquet files with the columns ts, device and temperature")
    parser.add_argument("output", help="where the result goes; what is there is replaced")
    parser.add_argument("--page", type=Path, help="where a page that explains the plan goes, on the driver's disk")
    given = parser.parse_args()
    spark = SparkSession.builder.appName("temperatures").getOrCreate()
    print(f"factor-windows {fw.__version__} from {fw.__file__}")
    plan = fw.optimize(query)
    if given.page:
        given.page.write_text(plan.to_html(), encoding="utf-8")
    plan.run(spark.read.parquet(given.input)).write.mode("overwrite").parquet(given.output)
    spark.stop()


if __name__ == "__main__":
    main()
