"""Two more opinions about plain queries: DuckDB, which runs the plan's SQL, and the reference in plain Python."""

from __future__ import annotations

from dataclasses import replace

from factor_windows import Query, optimize
from factor_windows.engines.python import evaluate
from fuzzing.data import COLUMNS, Data
from fuzzing.results import Row


def by_reference(query: Query, data: Data) -> list[Row]:
    """Evaluate a plain query in Python; times are microseconds."""
    events = [dict(zip(COLUMNS, row, strict=True)) for row in data.rows]
    if query.where:
        events = [event for event in events if _passes(query.where, event)]
    return [tuple(map(_text, row.values())) for row in evaluate(query, events)]


def by_duckdb(query: Query, data: Data, options: dict[str, object]) -> list[Row]:
    """Run the plan's SQL on DuckDB; times are microseconds."""
    import duckdb

    with duckdb.connect() as db:
        fill(db, data)
        text = optimize(replace(query, source="r"), **options).sql(dialect="duckdb")
        db.execute(f"CREATE TABLE result AS {text}")
        ends = "epoch_us(window_start) AS window_start, epoch_us(window_end) AS window_end"
        return [tuple(map(_text, row)) for row in db.execute(f"SELECT * REPLACE ({ends}) FROM result").fetchall()]


def fill(db, data: Data) -> None:
    """Put events into the table `r`."""
    kinds = ", ".join(f'"{name}" {_duckdb_type(kind)}' for name, kind in COLUMNS.items())
    db.execute(f"CREATE TABLE raw ({kinds})")
    if data.rows:
        db.executemany(f"INSERT INTO raw VALUES ({', '.join('?' * len(COLUMNS))})", data.rows)
    db.execute("CREATE TABLE r AS SELECT * REPLACE (make_timestamp(ts) AS ts) FROM raw")


def _passes(where: str, event: dict[str, object]) -> bool:
    return event["flag"] is True if where == "flag" else event["n"] is not None and event["n"] > 0


def _duckdb_type(kind: str) -> str:
    return {"timestamp": "BIGINT", "string": "VARCHAR", "float": "FLOAT"}.get(kind, kind.upper())


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
