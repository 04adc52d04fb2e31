"""DuckDB's forms of Spark SQL functions, by name and number of arguments `:a`, `:b` and `:c`.

Each form means the same as Spark's function for every value that both engines accept, as tests/test_duckdb_functions.py
checks; where some values would differ, it is an error for those. Times with a zone follow the session's zone in both.
"""

from __future__ import annotations

from factor_windows.functions.table import FUNCTIONS

ANY = -1
"""Stands for any number of arguments, which are passed on."""


def _same(count: int, names: str, *, form: str = "{}") -> dict[str, dict[int, str]]:
    """List functions that have the same name in DuckDB, perhaps all wrapped in the same form."""
    arguments = ", ".join(f":{letter}" for letter in "abc"[:count])
    return {name: {count: form.format(f"{name}({arguments})")} for name in names.split()}


AGGREGATES = {
    **_same(1, "avg bit_and bit_or bit_xor bool_and bool_or max median min mode"),
    **_same(1, "stddev_pop stddev_samp sum var_pop var_samp"),
    **_same(2, "corr covar_pop covar_samp regr_avgx regr_avgy regr_count regr_sxx regr_sxy regr_syy"),
    "approx_count_distinct": dict.fromkeys((1, 2), "count(DISTINCT :a)"),
    "approx_percentile": dict.fromkeys((2, 3), "quantile_disc(:a, :b)"),
    "collect_list": {1: "coalesce(list_filter(list(:a), e -> e IS NOT NULL), [])"},
    "collect_set": {1: "coalesce(list_distinct(list(:a)), [])"},
    "count": {1: "count(:a)", 2: "count(CASE WHEN NOT :a IS NULL AND NOT :b IS NULL THEN 1 END)"},
    "count_if": {1: "count(CASE WHEN :a THEN 1 END)"},
    "max_by": {2: "arg_max_null(:a, :b)"},
    "min_by": {2: "arg_min_null(:a, :b)"},
    "percentile": {2: "quantile_cont(:a, :b)"},
}
_SYNONYMS = ("any", "every", "mean", "percentile_approx", "some", "std", "stddev", "variance")
AGGREGATES |= {synonym: AGGREGATES[FUNCTIONS[synonym].name] for synonym in _SYNONYMS}
_LENGTH = "CASE WHEN {0} < 0 THEN 0 ELSE {0} END"
_FROM_END = "length(:a) + :b"
_SUBSTRING = (
    f"CASE WHEN :b > 0 THEN substr(:a, :b, {_LENGTH.format(':c')}) "
    f"WHEN :b = 0 THEN substr(:a, 1, {_LENGTH.format(':c')}) "
    f"WHEN {_FROM_END} >= 0 THEN substr(:a, {_FROM_END} + 1, {_LENGTH.format(':c')}) "
    f"WHEN :b < 0 THEN substr(:a, 1, {_LENGTH.format(f'(:c + {_FROM_END})')}) END"
)
"""Spark counts from 1, treats 0 as 1, counts from the end below 0, and cuts off what lies before the text."""
_SUBSTRING_TO_END = (
    f"CASE WHEN :b > 0 THEN substr(:a, :b) WHEN :b = 0 OR {_FROM_END} < 0 THEN :a "
    f"WHEN :b < 0 THEN substr(:a, {_FROM_END} + 1) END"
)
_TO_WHOLE = "CASE WHEN typeof(:a) LIKE '%INT%' THEN CAST(:a AS BIGINT) ELSE CAST({} AS BIGINT) END"
_NAN = "CAST('nan' AS DOUBLE)"
_FLOORED = "CAST((epoch_us(:a) - (epoch_us(:a) % {0} + {0}) % {0}) DIV {0} AS BIGINT)"
_OTHER_UPPER = (
    "ŉƛǰɤΐΰևᲊẖ-ẚὐὒὔὖᾀ-ᾯᾲ-ᾴᾶᾷᾼῂ-ῄῆῇῌῒΐῖῗῢ-ῤῦῧῲ-ῴῶῷῼ"
    "\ua7cd\ua7cf\ua7d3\ua7d5\ua7db\ufb00-\ufb06\ufb13-\ufb17\U00010d70-\U00010d85\U00016ebb-\U00016ed3"
)
"""The letters whose upper case differs: Spark turns one into two (ﬁ to FI), or knows a newer Unicode."""
_OTHER_LOWER = "İΣᲉ\ua7cb\ua7cc\ua7ce\ua7d2\ua7d4\ua7da\ua7dc\U00010d50-\U00010d65\U00016ea0-\U00016eb8"
"""The letters whose lower case differs; that of a sigma depends on its position."""
_UPPER = (
    f"CASE WHEN regexp_matches(:a, '[{_OTHER_UPPER}]') "
    "THEN error('upper() of this text differs between Spark and DuckDB') ELSE upper(replace(:a, 'ß', 'SS')) END"
)
_LOWER = (
    f"CASE WHEN regexp_matches(:a, '[{_OTHER_LOWER}]') "
    "THEN error('lower() of this text differs between Spark and DuckDB') ELSE lower(:a) END"
)
_ROUND = (
    "CASE WHEN typeof(:a) IN ('DOUBLE', 'FLOAT') THEN error('Spark rounds the decimal digits of a floating number, and "
    "DuckDB the number; cast it to a decimal first') ELSE round(:a, :b) END"
)
SCALARS = {
    **_same(1, "abs atan cbrt cos degrees exp md5 radians reverse sin sqrt tan"),
    **_same(2, "atan2 contains nullif pow repeat"),
    **_same(1, "day dayofyear hour length minute month quarter second weekofyear year", form="CAST({} AS INTEGER)"),
    **_same(1, "ln log10 log2", form="CASE WHEN :a > 0 THEN {} END"),
    **_same(1, "acos asin", form=f"CASE WHEN abs(:a) <= 1 THEN {{}} WHEN NOT :a IS NULL THEN {_NAN} END"),
    **_same(1, "ceil floor", form=_TO_WHOLE),
    **{name: {ANY: name} for name in ("coalesce", "greatest", "least")},
    "add_months": {2: "CAST(CAST(:a AS DATE) + to_months(CAST(:b AS INTEGER)) AS DATE)"},
    "char_length": {1: "length(:a)"},
    "date": {1: "CAST(:a AS DATE)"},
    "date_add": {2: "CAST(:a AS DATE) + CAST(:b AS INTEGER)"},
    "date_diff": {2: "CAST(date_diff('day', CAST(:b AS DATE), CAST(:a AS DATE)) AS INTEGER)"},
    "date_sub": {2: "CAST(:a AS DATE) - CAST(:b AS INTEGER)"},
    "dayofweek": {1: "CAST(dayofweek(:a) + 1 AS INTEGER)"},
    "endswith": {2: "ends_with(:a, :b)"},
    "if": {3: "CASE WHEN :a THEN :b ELSE :c END"},
    "ifnull": {2: "coalesce(:a, :b)"},
    "instr": {2: "CAST(instr(:a, :b) AS INTEGER)"},
    "isnan": {1: "coalesce(isnan(:a), FALSE)"},
    "isnotnull": {1: "NOT :a IS NULL"},
    "isnull": {1: "(:a IS NULL)"},
    "last_day": {1: "last_day(CAST(:a AS DATE))"},
    "left": {2: f"substr(:a, 1, {_LENGTH.format(':b')})"},
    "locate": {2: "CAST(instr(:b, :a) AS INTEGER)"},
    "lower": {1: _LOWER},
    "ltrim": {1: "ltrim(:a, ' ')"},
    "mod": {2: ":a % :b"},
    "nanvl": {2: "CASE WHEN isnan(:a) THEN :b ELSE :a END"},
    "negative": {1: "-(:a)"},
    "nvl2": {3: "CASE WHEN NOT :a IS NULL THEN :b ELSE :c END"},
    "pmod": {2: "CASE WHEN :a % :b < 0 THEN (:a % :b + :b) % :b ELSE :a % :b END"},
    "positive": {1: ":a"},
    "raise_error": {1: "error(:a)"},
    "replace": {3: "CASE WHEN :b = '' THEN :a ELSE replace(:a, :b, :c) END"},
    "right": {2: "CASE WHEN :b <= 0 THEN substr(:a, 1, 0) ELSE right(:a, :b) END"},
    "round": {1: "round(:a)", 2: _ROUND},
    "rtrim": {1: "rtrim(:a, ' ')"},
    "sign": {1: f"CASE WHEN isnan(CAST(:a AS DOUBLE)) THEN {_NAN} ELSE CAST(sign(:a) AS DOUBLE) END"},
    "startswith": {2: "starts_with(:a, :b)"},
    "substr": {2: _SUBSTRING_TO_END, 3: _SUBSTRING},
    "trim": {1: "ltrim(rtrim(:a, ' '), ' ')"},
    "unix_date": {1: "date_diff('day', DATE '1970-01-01', :a)"},
    "unix_micros": {1: "epoch_us(:a)"},
    "unix_millis": {1: _FLOORED.format(1000)},
    "unix_seconds": {1: _FLOORED.format(1000000)},
    "unix_timestamp": {1: "CAST(epoch_us(:a) DIV 1000000 AS BIGINT)"},
    "upper": {1: _UPPER},
    "weekday": {1: "CAST(isodow(:a) - 1 AS INTEGER)"},
}
SCALARS |= {
    synonym: SCALARS[name]
    for synonym, name in {
        "ceiling": "ceil",
        "character_length": "char_length",
        "datediff": "date_diff",
        "dayofmonth": "day",
        "len": "length",
        "log": "ln",
        "nvl": "ifnull",
        "power": "pow",
        "signum": "sign",
        "substring": "substr",
        "to_date": "date",
    }.items()
}
