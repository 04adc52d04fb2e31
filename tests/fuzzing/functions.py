"""What queries are made of: aggregates, keys and conditions as text; `{odd}` stands for the column of that name."""

from __future__ import annotations

from functools import cache

from factor_windows import FactorWindowsError, Query, tumbling

EXACT = (
    "min(v)", "max(v)", "min(f)", "max(f)", "count(*)", "count(v)", "sum(n)", "sum(i)", "sum(d)", "avg(d)", "min(huge)",
    "max(huge)", "bit_and(huge)", "bit_or(i)", "bool_and(flag)", "bool_or(flag)", "count_if(flag)", "min(s)", "max(s)",
    "max(wide)", "sum(wide)", "collect_set(i)", "min(key_0)", "max(ts)", "count(`my key`)",
    "min_by(s, struct(ts, n, s))", "max_by(i, struct(ts, n, i))", "sum(i) FILTER (WHERE flag)",
    "count(*) FILTER (WHERE v > 0)", "min(wide)", "max(v) FILTER (WHERE NOT flag)", "every(flag)", "some(n > 0)",
    "sum({odd})", "max({odd}) AS `the odd`", "count({odd}) FILTER (WHERE {odd} > 0)", "min({odd} + site)",
    "sum(mass)", "sum(big)", "max(big)", "min(mass)", "approx_count_distinct(ts)", "approx_count_distinct(i)",
    "count(i, n)", "count(k, site) FILTER (WHERE flag)", "any(flag)", "any_value(8)", "collect_list(i)",
    "array_agg(site) FILTER (WHERE flag)", "try_sum(mass)", "try_sum(big)", "try_avg(big)", "bit_xor(huge)",
    "listagg(s, ',') WITHIN GROUP (ORDER BY s)", "max_by(i, struct(ts, n, i), 2)",
    "max(n) - min(n) AS spread", "sum(i) + count(*)", "CAST(max(i) AS STRING) AS most", "coalesce(min(s), 'none')",
    "max(ts) - min(ts) AS length", "sum(CAST(txt AS INT)) FILTER (WHERE kind = 'r')", "collect_set(ts)",
)  # fmt: skip
"""What must be equal to the last digit, floating numbers among it as they are only chosen, not added."""
FLOATING = (
    "sum(v)", "avg(v)", "avg(n)", "avg(i)", "avg(f)", "var_pop(v)", "var_samp(n)", "stddev(v)", "stddev_pop(f)",
    "covar_pop(v, n)", "covar_samp(n, i)", "corr(v, i)", "sum(f)", "avg(v) FILTER (WHERE flag)", "variance(d)",
    "avg(big)", "try_avg(i)", "kurtosis(i)", "skewness(i)", "regr_slope(i, site)", "regr_intercept(i, site)",
    "regr_r2(i, site)", "regr_count(v, i)", "regr_avgx(n, i)", "regr_avgy(n, i)", "regr_sxx(n, i)", "regr_sxy(n, i)",
    "regr_syy(i, n)", "avg(v) - avg(i) AS drift",
)  # fmt: skip
HOLISTIC = (
    "median(n)", "percentile(v, 0.25)", "count(DISTINCT i)", "count(DISTINCT s, flag)", "mode(i, true)",
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY n)", "percentile_disc(0.5) WITHIN GROUP (ORDER BY i DESC)",
    "percentile_cont(0.3) WITHIN GROUP (ORDER BY v DESC)", "percentile(n, array(0.1, 0.9), abs(site))", "median(d)",
    "mode(s, true) FILTER (WHERE flag)", "sum(DISTINCT i)", "max(DISTINCT s) FILTER (WHERE n > 0)", "count(DISTINCT v)",
    "mode() WITHIN GROUP (ORDER BY i)", "approx_percentile(i, 0.5)", "approx_percentile(v, 0.5)",
)  # fmt: skip
KEYS = (
    "k", "site", "`my key`", "code", "key_0", "flag", "v", "huge", "upper(k) AS big_k", "coalesce(site, -1) % 2",
    "substr(s, 1, 1) AS initial", "d", "{odd}", "{odd} AS `other odd`", "{odd} + 1 AS more", "struct(k, site) AS pair",
    "array(site, i) AS both", "map(coalesce(k, ''), site) AS m", "named_struct('x', v) AS x", "CAST(ts AS DATE) AS day",
    "hour(ts)", "date_trunc('HOUR', ts) AS h", "`k` AS `it's`",
)  # fmt: skip
QUOTED_KEYS = ('"k" AS kk', '"my key"', 'upper("k")')
"""Keys for sessions in which double quotes are for names."""
WHERES = ("", "", "", "flag", "n > 0", "v IS NOT NULL AND s <> ''", "site IN (0, 1)", "{odd} > 0", "kind = 'r'")
GUARD = "kind = 'r'"
GUARDED_KEYS = ("CAST(txt AS INT) AS num", "CAST(txt AS INT) % 2 AS parity")
GUARDED_TIME = "CAST(sts AS TIMESTAMP)"
"""What fails in ANSI mode for the events that the guard leaves out."""

PLAIN = {
    "min(v)", "max(v)", "count(*)", "count(v)", "sum(n)", "sum(i)", "min(huge)", "max(huge)", "bool_and(flag)",
    "bool_or(flag)", "min(s)", "max(s)", "sum(v)", "avg(v)", "avg(n)", "var_pop(v)", "stddev(v)", "bit_or(i)",
    "count(*) FILTER (WHERE v > 0)", "sum(i) FILTER (WHERE flag)", "covar_pop(v, n)",
}  # fmt: skip
"""What means the same on DuckDB and to the reference, for values without NaN."""
PLAIN_KEYS = {"k", "site", "`my key`", "flag", "huge", "code"}
PLAIN_WHERES = {"", "flag", "n > 0"}


@cache
def known(*texts: str) -> tuple[str, ...]:
    """Leave out the aggregates that the library refuses: what it learns later is drawn from then on.

    >>> known("min(v)", "no_such_function(v)")
    ('min(v)',)
    """
    return tuple(text for text in texts if _is_read(text.replace("{odd}", "odd")))


def _is_read(text: str) -> bool:
    try:
        Query(time="ts", windows=[tumbling("1s")], aggregates=[text])
    except FactorWindowsError:
        return False
    return True
