"""SQL statements: names that clash, columns without a name, sub-queries, ROLLUP, UNION ALL; compared with spark.sql."""
# ruff: noqa: E501

from __future__ import annotations

import random
from collections.abc import Iterator

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import factor_windows as fw
from factor_windows.engines.spark_statement import tables_of
from factor_windows.engines.sql import emit_statement
from factor_windows.sql.parse import read
from fuzzing.data import Data, draw_data, quoted
from fuzzing.results import Value, collected, differing, is_floating, unlike
from fuzzing.settings import Settings, draw_settings
from fuzzing.trouble import first_line, is_arithmetic

STATEMENTS = 6
"""Statements for each data set; all of them are one Spark job."""
LENGTHS = ("1 minute", "2 minutes", "5 minutes", "90 seconds", "1 hour", "6 minutes")
AGGREGATES = (
    "count(*)", "sum(n)", "max(v)", "min(v)", "sum(i)", "max(s)", "min(i)", "count(v)", "max(huge)", "count(site)",
    "sum(d)", "avg(d)", "count(*) FILTER (WHERE v > 0)", "max(n) FILTER (WHERE flag)", "max(mass)", "sum(big)",
    "count(DISTINCT i)", "median(n)", "bool_or(flag)", "max(ts)", "sum({odd})",
)  # fmt: skip
EXPRESSIONS = (
    "-max(v)", "max(i) IN (1, 2)", "max(v) BETWEEN 1 AND 3", "1e3", "5L", "'{result}'", "count(*) + 1", "NOT bool_or(flag)",
    "max(n) - min(n)", "round(max(v), 1)", "CASE WHEN count(*) > 1 THEN 'many' ELSE 'one' END", "sum(n) / count(*)",
    "coalesce(max(s), 'none')", "CAST(count(*) AS STRING)", "max(i) IS NULL", "1", "NULL", "concat('n=', count(*))",
    "abs(sum(i))", "max(n) % 7", "greatest(max(i), min(site))", "1.50", "max(s) || '!'", "date'2024-01-01'", "1BD",
    "count(*) > 1 AND max(i) < 3", "if(count(*) > 1, 1, 0)", "max(s) LIKE 'x%'", "max(ts) > window.start",
    "interval 1 hour", "5 + 5 * 2", "(max(i) + 1) * 2", "max(i) + 1 * 2", "max(i)::STRING", "array(max(i), min(i))",
    "sum(DISTINCT i)", "count(DISTINCT i, k)", "max(x'41')", "true", "-1", "- 1", "+max(i)", "~max(i)", "max(i) <=> 1",
    "max(i) <> 1", "max(i) != 1", "max(i) == 1", "!bool_or(flag)", "max(i) DIV 2", "struct(max(i), 1)", "upper(max(s))",
)  # fmt: skip
KEYS = (
    "k", "site", "`my key`", "flag", "upper(k)", "site % 2", "coalesce(site, -1)", "{odd}", "substr(s, 1, 1)", "key_0",
    "site IS NULL", "CAST(site AS STRING)", "struct(k, site)", "length(k) + 1", "k = 'a'", "round(d, 1)", "abs(d)",
)  # fmt: skip
ALIASES = ("site", "k", "v", "n", "ts", "s", "alias", "`my key`", "x", "Site", "window", "it`s")
"""Most of these are columns of the table too."""
WINDOW_COLUMNS = (
    "window.start AS s", "window.end AS e", "window.start", "window", "window.end", "window AS w", "window.start AS ts",
    "window.start + INTERVAL 1 HOUR", "window.start AS site", "window_time(window)",
    "date_format(window.start, 'HH:mm') AS `at`",
)  # fmt: skip
HAVINGS = (
    "count(*) > 1", "max(v) > 0", "count(*) FILTER (WHERE v > 0) > 0", "max(n) > min(n) OR count(*) = 1",
    "sum(i) IN (0, 1, 2)", "window.start IS NOT NULL", "max(s) LIKE '%x%' OR count(*) > 0",
)  # fmt: skip
ORDERS = ("1", "window.start", "count(*)", "max(v) DESC", "window.start, 1", "1 DESC NULLS LAST", "max(s) NULLS FIRST")
PLACES = (
    "r", "r", "r", "r AS x", "r x", "(SELECT * FROM r) AS q", "(SELECT * FROM r)", "(SELECT * FROM r WHERE i > 0) x",
    "(SELECT * FROM r WHERE site IS NOT NULL)", "(SELECT *, upper(k) AS alias FROM r)",
)  # fmt: skip
WHERES = (
    "",
    "",
    "",
    "flag",
    "i > 0",
    "v IS NOT NULL AND s <> ''",
    "{odd} > 0",
    "kind = 'r'",
    "s = '{result}' OR i < 2",
)


class Drawn:
    """One statement as it is drawn."""

    def __init__(self, rng: random.Random, odd: str) -> None:
        self.rng, self.odd = rng, odd

    def text(self) -> str:
        """Draw a statement: one SELECT, or several united, alone or inside another."""
        rng = self.rng
        inner = self._union() if rng.random() < 0.25 else self._select(rng.choice(LENGTHS))
        kind = rng.random()
        if kind < 0.06:
            inner = f"SELECT * FROM ({inner}) AS outside WHERE true"
        elif kind < 0.1:
            inner = f"SELECT count(*) AS `rows` FROM ({inner})"
        elif kind < 0.14:
            inner = f"WITH a AS ({inner}) SELECT * FROM a"
        return inner.replace("{odd}", quoted(self.odd))

    def _union(self) -> str:
        """The same columns for several windows, or nearly so: one asks for another aggregate in its last place."""
        rng = self.rng
        lengths = rng.sample(LENGTHS, rng.choice([2, 3]))
        state = rng.getstate()
        parts = []
        for length in lengths:
            rng.setstate(state)
            parts.append(self._select(length, is_ordered=False))
        if rng.random() < 0.3:
            parts[-1] = parts[-1].replace("sum(n)", "max(n)").replace("sum(big)", "max(big)")
        return " UNION ALL ".join(parts)

    def _select(self, length: str, *, is_ordered: bool = True) -> str:
        rng = self.rng
        keys = rng.sample(KEYS, rng.choice([0, 1, 1, 2, 3]))
        shown: list[str] = []
        groups: list[str] = []
        for key in keys:
            alias = rng.choice(ALIASES) if rng.random() < 0.4 else ""
            if rng.random() < 0.85:
                shown.append(f"{key} AS {quoted(alias.strip('`'))}" if alias else key)
                by = rng.random()
                groups.append(str(len(shown)) if by < 0.1 else quoted(alias.strip("`")) if alias and by < 0.4 else key)
            else:
                groups.append(key)
        if rng.random() < 0.9:
            shown.append(rng.choice(WINDOW_COLUMNS))
        for _ in range(rng.choice([1, 2, 3])):
            text = rng.choice(AGGREGATES if rng.random() < 0.6 else EXPRESSIONS)
            alias = rng.choice(ALIASES) if rng.random() < 0.4 else ""
            shown.append(f"{text} AS {quoted(alias.strip('`'))}" if alias else text)
        parts = [f"SELECT {', '.join(shown)} FROM {rng.choice(PLACES)}"]
        if where := rng.choice(WHERES):
            parts.append(f"WHERE {where}")
        parts.append(f"GROUP BY {self._grouped(groups, self._window(length))}")
        # What is shown by a name may be asked for by it, were it a column of the table as well.
        names = [
            quoted(each.rsplit(" AS ", 1)[1].strip("`")) for each in shown if " AS " in each and "CAST" not in each
        ]
        if rng.random() < 0.3:
            named = [f"{name} IS NOT NULL" for name in names]
            parts.append(f"HAVING {rng.choice([*HAVINGS, *named])}")
        order = rng.choice([*ORDERS, *names, *(f"{key} DESC" for key in groups[:1])]) if rng.random() < 0.25 else ""
        if order and is_ordered:
            parts.append(f"ORDER BY {order}")
        return " ".join(parts)

    def _window(self, length: str) -> str:
        more = self.rng.choice(["", "", "", ", '30 seconds'", ", '1 minute', '10 seconds'"])
        return f"window(ts, '{length}'{more if length != '90 seconds' else ''})"

    def _grouped(self, groups: list[str], window: str) -> str:
        kind = self.rng.random()
        if not groups or kind < 0.65:
            return ", ".join([*groups, window] if kind < 0.4 else [window, *groups])
        keys = ", ".join(groups)
        if kind < 0.8:
            return f"{window}, ROLLUP({keys})"
        if kind < 0.9:
            return f"CUBE({keys}), {window}"
        return f"GROUPING SETS (({', '.join([*groups, window])}), ({window}))"


def draw_statements(seed: int) -> tuple[Settings, Data, list[str]]:
    """Draw a session, a data set and statements over it."""
    rng = random.Random(seed)
    settings = draw_settings(rng)
    data = draw_data(rng, settings)
    return settings, data, [Drawn(rng, data.odd).text() for _ in range(STATEMENTS)]


def check_statements(
    spark: SparkSession, settings: Settings, data: Data, texts: list[str]
) -> tuple[list[str], list[str]]:
    """Run statements by Spark and by plans; return what differs, and what was refused with a reason."""
    session = settings.session(spark)
    # The fewer columns, the shorter Spark's own plan; and data that overflows belongs into batch cases.
    data.frame(session).createOrReplaceTempView("r")
    right: dict[str, DataFrame] = {}
    ours: dict[str, DataFrame] = {}
    problems: list[tuple[str, str]] = []
    refused: list[str] = []
    for text in texts:
        try:
            right[text] = session.sql(text)
        except Exception:
            refused.append(f"Spark itself cannot read it: {text}")
            continue
        for way, compute in (("", fw.sql), ("emitted: ", _emitted)):
            try:
                ours[f"{way}{text}"] = compute(session, text)
            except fw.FactorWindowsError as refusal:
                # A refusal says why; what Spark says of a text that we wrote is no refusal.
                if "Spark cannot run" in str(refusal):
                    problems.append((f"{way}{text}", str(refusal)[:400]))
                else:
                    refused.append(f"{str(refusal)[:300]}: {text}")
            except Exception as trouble:
                problems.append((f"{way}{text}", first_line(trouble)))
    for text, frame in ours.items():
        problems += [
            (text, found) for found in unlike(frame.schema, _of(right, text).schema, is_text=_is_emitted(text))
        ]
    problems += _rows(right, ours, data.scale)
    return [f"{settings}, {text!r}: {problem}" for text, problem in problems], refused


def _rows(right: dict[str, DataFrame], ours: dict[str, DataFrame], scale: float) -> Iterator[tuple[str, str]]:
    asked = {name: right[name] for name in right if any(_bare(text) == name for text in ours)}
    frames = {f"right {name}": frame for name, frame in asked.items()}
    frames |= {f"ours {name}": frame for name, frame in ours.items()}
    try:
        found = collected(frames)
    except Exception:
        yield from _one_by_one(asked, ours, scale)
        return
    for text, frame in ours.items():
        yield from _difference(text, found[f"ours {text}"], found[f"right {_bare(text)}"], frame.schema, scale)


def _one_by_one(right: dict[str, DataFrame], ours: dict[str, DataFrame], scale: float) -> Iterator[tuple[str, str]]:
    """Find out which statement failed: it may where Spark's does, and must then."""
    for text, frame in ours.items():
        try:
            expected = collected({"": _of(right, text)})[""]
        except Exception as trouble:
            if is_arithmetic(first_line(trouble)):
                try:
                    collected({"": frame})
                    yield text, f"runs where Spark says {first_line(trouble)}"
                except Exception:
                    continue
            continue
        try:
            found = collected({"": frame})[""]
        except Exception as trouble:
            yield text, first_line(trouble)
            continue
        yield from _difference(text, found, expected, frame.schema, scale)


def _difference(text: str, ours: list, right: list, schema: StructType, scale: float) -> Iterator[tuple[str, str]]:
    """Compare by rows; floating columns, which may differ in their last digits, go last."""
    floating = [place for place, field in enumerate(schema) if is_floating(field, _is_emitted(text))]
    order = [*(place for place in range(len(schema)) if place not in floating), *floating]
    if any(len(row) != len(schema) for row in [*ours, *right]):
        return
    placed = [[tuple(row[place] for place in order) for row in rows] for rows in (ours, right)]
    values = [Value(schema[place].name, True) for place in floating]
    if found := differing(*placed, values, scale):
        yield text, found


def _emitted(session: SparkSession, text: str) -> DataFrame:
    """Write a statement's plans as SQL, with the session's word on names, and let Spark run that."""
    [statement] = read(text, dialect="spark", tables=tables_of(session))
    plans = [fw.optimize(query) for query in statement.queries]
    return session.sql(emit_statement(statement, plans, dialect="spark"))


def _is_emitted(text: str) -> bool:
    return text.startswith("emitted: ")


def _bare(text: str) -> str:
    return text.removeprefix("emitted: ")


def _of(right: dict[str, DataFrame], text: str) -> DataFrame:
    return right[_bare(text)]
