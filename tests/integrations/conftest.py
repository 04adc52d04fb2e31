"""What the tests of real parts share: a session with Delta, Iceberg and Kafka, and a broker.

`make integrations` runs these, with a Spark that all of these parts exist for; elsewhere they are skipped, and say why.
"""

import os
from pathlib import Path
from uuid import uuid4

import pytest

JARS = Path(__file__).parents[2] / "jars"
SPARK = "4.1"
"""The Spark that scripts/pom.xml has packages for."""


def pytest_collection_modifyitems(items):
    reason = _left_out()
    if reason is None:
        return
    if os.environ.get("FACTOR_WINDOWS_INTEGRATIONS"):
        raise pytest.UsageError(reason)
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=reason))


def _left_out():
    import pyspark

    if not pyspark.__version__.startswith(f"{SPARK}."):
        return f"Kafka, Delta and Iceberg need Spark {SPARK}, and this is {pyspark.__version__}: make integrations"
    if not (JARS / "spark").exists():
        return "Kafka, Delta and Iceberg need the packages that scripts/ensure-jars fetches by Maven: make integrations"
    return None


def lake_settings(warehouse):
    """The settings of a session with Kafka, with Delta as its own catalog and Iceberg as the catalog `ice`."""
    return {
        "spark.jars": ",".join(str(path) for path in sorted((JARS / "spark").glob("*.jar"))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": f"{warehouse}/iceberg",
        "spark.sql.warehouse.dir": f"{warehouse}/delta",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # Most of a tiny query's time goes into generating and compiling its code.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory):
    """Where tables are."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="session")
def spark(warehouse):
    """The one Spark session of these tests."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config(map=lake_settings(warehouse)).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(params=["delta", "iceberg"])
def format(request):
    """The format of a table."""
    return request.param


@pytest.fixture
def table(format):
    """The name of a table that is not there yet, in the catalog of the format."""
    name = f"t{uuid4().hex[:10]}"
    return name if format == "delta" else f"ice.db.{name}"


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """A Kafka broker that runs; its topics come into being, with two partitions, when they are written to."""
    from benchmarks.kafka_broker import Broker

    running = Broker(tmp_path_factory.mktemp("kafka")).start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def connect(tmp_path_factory):
    """A Spark Connect server that runs, with Delta, Iceberg and Kafka."""
    from connect_server import ConnectServer

    folder = tmp_path_factory.mktemp("connect")
    running = ConnectServer(folder, lake_settings(folder)).start()
    yield running
    running.stop()
