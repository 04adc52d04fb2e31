"""What DuckDB calls the functions of Spark SQL, by their names and the number of their arguments `:a`, `:b` and `:c`.

Each form means the same as Spark's function for every value that both engines take, in tests/test_duckdb_functions.py;
where some values differ, it is an error for those. Times with a zone go by the session's in both.
"""

from __future__ import annotations

ANY = -1
"""Stands for any number of arguments, which are passed on."""

AGGREGATES = {
    "any": {1: "bool_or(:a)"},
    "approx_count_distinct": {1: "count(DISTINCT :a)", 2: "count(DISTINCT :a)"},
    "approx_percentile": {2: "quantile_disc(:a, :b)", 3: "quantile_disc(:a, :b)"},
    "avg": {1: "avg(:a)"},
    "bit_and": {1: "bit_and(:a)"},
    "bit_or": {1: "bit_or(:a)"},
    "bit_xor": {1: "bit_xor(:a)"},
    "bool_and": {1: "bool_and(:a)"},
    "bool_or": {1: "bool_or(:a)"},
    "collect_list": {1: "coalesce(list_filter(list(:a), e -> e IS NOT NULL), [])"},
    "collect_set": {1: "coalesce(list_distinct(list(:a)), [])"},
    "corr": {2: "corr(:a, :b)"},
    "count": {1: "count(:a)", 2: "count(CASE WHEN NOT :a IS NULL AND NOT :b IS NULL THEN 1 END)"},
    "count_if": {1: "count(CASE WHEN :a THEN 1 END)"},
    "covar_pop": {2: "covar_pop(:a, :b)"},
    "covar_samp": {2: "covar_samp(:a, :b)"},
    "every": {1: "bool_and(:a)"},
    "max": {1: "max(:a)"},
    "max_by": {2: "arg_max_null(:a, :b)"},
    "mean": {1: "avg(:a)"},
    "median": {1: "median(:a)"},
    "min": {1: "min(:a)"},
    "min_by": {2: "arg_min_null(:a, :b)"},
    "mode": {1: "mode(:a)"},
    "percentile": {2: "quantile_cont(:a, :b)"},
    "percentile_approx": {2: "quantile_disc(:a, :b)", 3: "quantile_disc(:a, :b)"},
    "regr_avgx": {2: "regr_avgx(:a, :b)"},
    "regr_avgy": {2: "regr_avgy(:a, :b)"},
    "regr_count": {2: "regr_count(:a, :b)"},
    "regr_sxx": {2: "regr_sxx(:a, :b)"},
    "regr_sxy": {2: "regr_sxy(:a, :b)"},
    "regr_syy": {2: "regr_syy(:a, :b)"},
    "some": {1: "bool_or(:a)"},
    "std": {1: "stddev_samp(:a)"},
    "stddev": {1: "stddev_samp(:a)"},
    "stddev_pop": {1: "stddev_pop(:a)"},
    "stddev_samp": {1: "stddev_samp(:a)"},
    "sum": {1: "sum(:a)"},
    "var_pop": {1: "var_pop(:a)"},
    "var_samp": {1: "var_samp(:a)"},
    "variance": {1: "var_samp(:a)"},
}
_LENGTH = "CASE WHEN {0} < 0 THEN 0 ELSE {0} END"
_FROM_END = "length(:a) + :b"
_SUBSTRING = (
    f"CASE WHEN :b > 0 THEN substr(:a, :b, {_LENGTH.format(':c')}) "
    f"WHEN :b = 0 THEN substr(:a, 1, {_LENGTH.format(':c')}) "
    f"WHEN {_FROM_END} >= 0 THEN substr(:a, {_FROM_END} + 1, {_LENGTH.format(':c')}) "
    f"WHEN :b < 0 THEN substr(:a, 1, {_LENGTH.format(f'(:c + {_FROM_END})')}) END"
)
"""Spark counts from 1, takes 0 for it, counts from the end below, and what lies before the text is cut off."""
_SUBSTRING_TO_END = (
    f"CASE WHEN :b > 0 THEN substr(:a, :b) WHEN :b = 0 OR {_FROM_END} < 0 THEN :a "
    f"WHEN :b < 0 THEN substr(:a, {_FROM_END} + 1) END"
)
_TO_WHOLE = "CASE WHEN typeof(:a) LIKE '%INT%' THEN CAST(:a AS BIGINT) ELSE CAST({0}(:a) AS BIGINT) END"
_NAN = "CAST('nan' AS DOUBLE)"
_INSIDE = f"CASE WHEN abs(:a) <= 1 THEN {{0}}(:a) WHEN NOT :a IS NULL THEN {_NAN} END"
_SIGN = f"CASE WHEN isnan(CAST(:a AS DOUBLE)) THEN {_NAN} ELSE CAST(sign(:a) AS DOUBLE) END"
_FLOORED = "CAST((epoch_us(:a) - (epoch_us(:a) % {0} + {0}) % {0}) DIV {0} AS BIGINT)"
_OTHER_UPPER = (
    "ŉƛǰɤΐΰևᲊẖ-ẚὐὒὔὖᾀ-ᾯᾲ-ᾴᾶᾷᾼῂ-ῄῆῇῌῒΐῖῗῢ-ῤῦῧῲ-ῴῶῷῼ"
    "\ua7cd\ua7cf\ua7d3\ua7d5\ua7db\ufb00-\ufb06\ufb13-\ufb17\U00010d70-\U00010d85\U00016ebb-\U00016ed3"
)
"""The letters whose capitals differ: Spark makes two of one (ﬁ to FI), or knows a newer Unicode."""
_OTHER_LOWER = "İΣᲉ\ua7cb\ua7cc\ua7ce\ua7d2\ua7d4\ua7da\ua7dc\U00010d50-\U00010d65\U00016ea0-\U00016eb8"
"""The letters whose small ones differ; a sigma's depends on where it stands."""
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
    "abs": {1: "abs(:a)"},
    "acos": {1: _INSIDE.format("acos")},
    "add_months": {2: "CAST(CAST(:a AS DATE) + to_months(CAST(:b AS INTEGER)) AS DATE)"},
    "asin": {1: _INSIDE.format("asin")},
    "atan": {1: "atan(:a)"},
    "atan2": {2: "atan2(:a, :b)"},
    "cbrt": {1: "cbrt(:a)"},
    "ceil": {1: _TO_WHOLE.format("ceil")},
    "ceiling": {1: _TO_WHOLE.format("ceil")},
    "char_length": {1: "length(:a)"},
    "character_length": {1: "length(:a)"},
    "coalesce": {ANY: "coalesce"},
    "contains": {2: "contains(:a, :b)"},
    "cos": {1: "cos(:a)"},
    "date": {1: "CAST(:a AS DATE)"},
    "date_add": {2: "CAST(:a AS DATE) + CAST(:b AS INTEGER)"},
    "date_diff": {2: "CAST(date_diff('day', CAST(:b AS DATE), CAST(:a AS DATE)) AS INTEGER)"},
    "date_sub": {2: "CAST(:a AS DATE) - CAST(:b AS INTEGER)"},
    "datediff": {2: "CAST(date_diff('day', CAST(:b AS DATE), CAST(:a AS DATE)) AS INTEGER)"},
    "day": {1: "CAST(day(:a) AS INTEGER)"},
    "dayofmonth": {1: "CAST(day(:a) AS INTEGER)"},
    "dayofweek": {1: "CAST(dayofweek(:a) + 1 AS INTEGER)"},
    "dayofyear": {1: "CAST(dayofyear(:a) AS INTEGER)"},
    "degrees": {1: "degrees(:a)"},
    "endswith": {2: "ends_with(:a, :b)"},
    "exp": {1: "exp(:a)"},
    "floor": {1: _TO_WHOLE.format("floor")},
    "greatest": {ANY: "greatest"},
    "hour": {1: "CAST(hour(:a) AS INTEGER)"},
    "ifnull": {2: "coalesce(:a, :b)"},
    "instr": {2: "CAST(instr(:a, :b) AS INTEGER)"},
    "isnan": {1: "coalesce(isnan(:a), FALSE)"},
    "isnotnull": {1: "NOT :a IS NULL"},
    "isnull": {1: "(:a IS NULL)"},
    "last_day": {1: "last_day(CAST(:a AS DATE))"},
    "least": {ANY: "least"},
    "left": {2: f"substr(:a, 1, {_LENGTH.format(':b')})"},
    "len": {1: "CAST(length(:a) AS INTEGER)"},
    "length": {1: "CAST(length(:a) AS INTEGER)"},
    "ln": {1: "CASE WHEN :a > 0 THEN ln(:a) END"},
    "locate": {2: "CAST(instr(:b, :a) AS INTEGER)"},
    "log": {1: "CASE WHEN :a > 0 THEN ln(:a) END"},
    "log10": {1: "CASE WHEN :a > 0 THEN log10(:a) END"},
    "log2": {1: "CASE WHEN :a > 0 THEN log2(:a) END"},
    "lower": {1: _LOWER},
    "ltrim": {1: "ltrim(:a, ' ')"},
    "md5": {1: "md5(:a)"},
    "minute": {1: "CAST(minute(:a) AS INTEGER)"},
    "mod": {2: ":a % :b"},
    "month": {1: "CAST(month(:a) AS INTEGER)"},
    "nanvl": {2: "CASE WHEN isnan(:a) THEN :b ELSE :a END"},
    "negative": {1: "-(:a)"},
    "nullif": {2: "nullif(:a, :b)"},
    "nvl": {2: "coalesce(:a, :b)"},
    "nvl2": {3: "CASE WHEN NOT :a IS NULL THEN :b ELSE :c END"},
    "pmod": {2: "CASE WHEN :a % :b < 0 THEN (:a % :b + :b) % :b ELSE :a % :b END"},
    "positive": {1: ":a"},
    "pow": {2: "pow(:a, :b)"},
    "power": {2: "pow(:a, :b)"},
    "quarter": {1: "CAST(quarter(:a) AS INTEGER)"},
    "radians": {1: "radians(:a)"},
    "repeat": {2: "repeat(:a, :b)"},
    "replace": {3: "CASE WHEN :b = '' THEN :a ELSE replace(:a, :b, :c) END"},
    "reverse": {1: "reverse(:a)"},
    "right": {2: "CASE WHEN :b <= 0 THEN substr(:a, 1, 0) ELSE right(:a, :b) END"},
    "round": {1: "round(:a)", 2: _ROUND},
    "rtrim": {1: "rtrim(:a, ' ')"},
    "second": {1: "CAST(second(:a) AS INTEGER)"},
    "sign": {1: _SIGN},
    "signum": {1: _SIGN},
    "sin": {1: "sin(:a)"},
    "sqrt": {1: "sqrt(:a)"},
    "startswith": {2: "starts_with(:a, :b)"},
    "substr": {2: _SUBSTRING_TO_END, 3: _SUBSTRING},
    "substring": {2: _SUBSTRING_TO_END, 3: _SUBSTRING},
    "tan": {1: "tan(:a)"},
    "to_date": {1: "CAST(:a AS DATE)"},
    "trim": {1: "ltrim(rtrim(:a, ' '), ' ')"},
    "unix_date": {1: "date_diff('day', DATE '1970-01-01', :a)"},
    "unix_micros": {1: "epoch_us(:a)"},
    "unix_millis": {1: _FLOORED.format(1000)},
    "unix_seconds": {1: _FLOORED.format(1000000)},
    "unix_timestamp": {1: "CAST(epoch_us(:a) DIV 1000000 AS BIGINT)"},
    "upper": {1: _UPPER},
    "weekday": {1: "CAST(isodow(:a) - 1 AS INTEGER)"},
    "weekofyear": {1: "CAST(weekofyear(:a) AS INTEGER)"},
    "year": {1: "CAST(year(:a) AS INTEGER)"},
}
