"""Every function gives what Spark gives: rows, names, types and nullability, from levels of states and from events."""

import pytest
from comparing import equal
from fuzzing.batch import _forced
from pyspark.sql import functions as F

from factor_windows import Query, optimize, tumbling
from factor_windows.spark.naive import naive

MINUTES = [tumbling(f"{number} minutes") for number in (1, 2, 6)]


@pytest.fixture
def configured(spark):
    """Change settings of the session for one test."""
    changed = {}

    def change(**settings):
        for name, value in settings.items():
            full = {"ansi": "spark.sql.ansi.enabled", "zone": "spark.sql.session.timeZone"}.get(name, name)
            changed.setdefault(full, spark.conf.get(full))
            spark.conf.set(full, value)

    yield change
    for name, value in changed.items():
        spark.conf.set(name, value)


@pytest.fixture(scope="module")
def events(spark):
    """Seventeen minutes of two keys: nulls, NaN, infinities, decimals, values far from zero and equal ones."""
    odd = "CASE WHEN id % 19 = 3 THEN double('NaN') WHEN id % 23 = 5 THEN double('Infinity') ELSE id * 0.5D END"
    found = spark.sql(
        f"""SELECT timestamp_micros(id * 7000000) AS ts, CAST(id % 2 AS STRING) AS k, id AS n, id % 2 = 0 AS ok,
                   IF(id % 11 = 0, NULL, id * 0.1D) AS v, {odd} AS odd, CAST({odd} AS FLOAT) AS f,
                   IF(id % 7 < 2, NULL, CAST(id % 5 AS INT)) AS i, CAST(id * 0.125 AS DECIMAL(12,3)) AS d,
                   IF(id % 9 = 0, NULL, CAST(id * 0.125 AS DECIMAL(38,3))) AS wide, CAST(id AS STRING) AS s,
                   IF(id < 20, NULL, id) AS late, make_dt_interval(0, 0, 0, id) AS wait, 0.1D AS same,
                   1e5D + id % 7 AS far,
                   named_struct('a', id % 4) AS st, map('a', id % 3) AS m, CAST(CAST(id AS STRING) AS BINARY) AS b
            FROM range(150)"""
    ).cache()
    yield found
    found.unpersist()


def planned(query):
    return optimize(query, search="coverage", rate=100, unit="1 second")


def schema(frame):
    return [(field.name, field.dataType, field.nullable) for field in frame.schema]


def rows(frame):
    """Collect rows in the order of keys and windows; times as text, which has no zone to get wrong."""
    times = {name: F.col(name).cast("string") for name in ("window_start", "window_end")}
    width = frame.columns.index("window_end")
    return sorted(map(tuple, frame.withColumns(times).collect()), key=lambda row: str(row[:width]))


def assert_as_naive(query, events, *, found=None):
    """Compare a plan of several levels with Spark's own query, named as Spark names it."""
    expected = naive(query, events)
    found = planned(query).run(events) if found is None else found
    assert schema(found) == schema(expected)
    left, right = rows(found), rows(expected)
    assert len(left) == len(right)
    for ours, theirs in zip(left, right, strict=True):
        differing = [n for n, a, b in zip(found.columns, ours, theirs, strict=True) if not equal(a, b)]
        assert not differing, (differing, ours, theirs)


MERGED = [
    *("count(*)", "count(i)", "count(i, v)", "count_if(ok)", "sum(n)", "sum(i)", "sum(d)", "sum(wide)", "sum(wait)"),
    *("avg(n)", "avg(v)", "avg(d)", "avg(wide)", "avg(wait)", "try_sum(n)", "try_sum(wide)", "try_sum(v)"),
    *("try_sum(wait)", "try_avg(n)", "try_avg(d)", "try_avg(wide)", "try_avg(wait)", "any(ok)", "some(ok)"),
    *("every(late > 30)", "bit_xor(n)", "bit_xor(i) FILTER (WHERE ok)", "collect_list(i)", "array_agg(late) AS lates"),
    *("collect_set(i)", "collect_set(st)", "any_value(same)", "any_value(same) FILTER (WHERE n % 50 = 0)"),
    *("any_value(same, true) FILTER (WHERE ok)", "first(late) RESPECT NULLS", "last(late) IGNORE NULLS", "min(odd)"),
    *("var_pop(d)", "var_samp(far)", "covar_pop(d, wide)", "corr(v, i)", "corr(v, same)", "corr(far, v)"),
    *("regr_count(v, i)", "regr_avgx(v, i)", "regr_avgx(v, d)", "regr_avgy(wide, i)", "regr_sxx(v, i)"),
    *("regr_syy(v, i)", "regr_sxy(v, i)", "regr_slope(v, i)", "regr_slope(far, v)", "regr_intercept(v, i)"),
    *("regr_r2(v, i)", "regr_slope(v, same)", "regr_intercept(v, same)", "regr_r2(v, same)", "regr_r2(same, v)"),
    *("approx_count_distinct(st)", "approx_percentile(n, array(0.1, 0.5))", "sum(late) - min(late)"),
    *("max(v) - min(v) AS spread", "sum(v) / count(*)", "round(avg(d), 1) * -1 AS negated", "k || count(*)"),
]
WHOLE = [
    *("kurtosis(far)", "skewness(v) FILTER (WHERE ok)", "percentile_cont(0.25) WITHIN GROUP (ORDER BY v)", "median(v)"),
    *("percentile_disc(0.5) WITHIN GROUP (ORDER BY v DESC)", "mode() WITHIN GROUP (ORDER BY i)", "max_by(s, n, 2)"),
    *("min_by(s, n, 2)", "listagg(s, ',') WITHIN GROUP (ORDER BY n DESC)", "collect_list(i) RESPECT NULLS"),
    *("count(DISTINCT i)", "approx_count_distinct(m)", "sum(n)", "count(*)"),
]


@pytest.mark.long
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_functions_of_states_give_what_spark_gives(events, configured, ansi):
    configured(ansi=ansi)
    assert_as_naive(Query(time="ts", keys=["k"], windows=MINUTES, aggregates=MERGED), events)


def test_functions_of_all_events_give_what_spark_gives(events):
    assert_as_naive(Query(time="ts", keys=["k"], windows=MINUTES, aggregates=WHOLE), events)


def test_lists_hold_the_same_texts(events):
    query = Query(
        time="ts", windows=MINUTES, aggregates=["listagg(s, ',') AS a", "string_agg(n) AS b", "listagg(i, '-') AS c"]
    )
    sides = [planned(query).run(events), naive(query, events)]
    assert schema(sides[0]) == schema(sides[1])
    by_start = [{row[:2]: [sorted(text or "-") for text in row[3:]] for row in rows(side)} for side in sides]
    assert by_start[0] == by_start[1]


def test_a_list_of_bytes_is_made_from_events(events):
    query = Query(time="ts", windows=MINUTES[:2], aggregates=["length(listagg(b)) AS bytes"])
    assert_as_naive(query, events)


def test_expressions_over_aggregates_see_having_and_output(events):
    query = Query(
        time="ts",
        keys=["k"],
        windows=MINUTES,
        aggregates=["max(n) - min(n) AS spread", "count(*)"],
        having="spread > 40",
        output=["k", "window_id", "spread + 1 AS wider", "`count(1)`"],
    )
    expected = naive(query, events).where("spread > 40").selectExpr(*query.output)
    found = planned(query).run(events)
    assert found.columns == ["k", "window_id", "wider", "count(1)"]
    assert sorted(found.collect()) == sorted(expected.collect())
    assert found.count() == 6


@pytest.mark.parametrize("keys", [["k"], []])
def test_a_decimal_that_overflows_in_a_part_is_null_without_ansi_mode(spark, configured, keys):
    configured(ansi="false")
    events = spark.sql(
        """SELECT timestamp_micros(id * 20000000) AS ts, 'a' AS k,
                  CAST(IF(id < 2, '9e37', '1') AS DECIMAL(38,0)) AS big FROM range(12)"""
    )
    aggregates = ["sum(big)", "avg(big)", "try_sum(big)", "try_avg(big)", "count(big)"]
    query = Query(time="ts", keys=keys, windows=MINUTES, aggregates=aggregates)
    assert_as_naive(query, events)
    values = {tuple(row[-5:-2]) for row in planned(query).run(events).where("window_id = '2 minutes'").collect()}
    assert values == {(None, None, None), (6, 1, 6)}


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("aggregate", ["sum(big)", "avg(big)", "sum(long)"])
def test_a_sum_that_overflows_is_sparks_own_error_in_ansi_mode(spark, aggregate):
    events = spark.sql(
        """SELECT timestamp_micros(id * 40000000) AS ts, CAST('9e37' AS DECIMAL(38,0)) AS big,
                  9223372036854775807L AS long FROM range(4)"""
    )
    query = Query(time="ts", windows=MINUTES, aggregates=[aggregate])
    for run in (planned(query).run, lambda frame: naive(query, frame)):
        # Two stages may fail at the same time, which is an error of another type.
        with pytest.raises(Exception, match=r"\[ARITHMETIC_OVERFLOW\]"):
            run(events).collect()


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_sum_of_intervals_that_overflows_is_sparks_own_error(spark, configured, ansi):
    configured(ansi=ansi)
    events = spark.sql("SELECT timestamp_micros(id * 40000000) AS ts, INTERVAL '106751990' DAY AS wait FROM range(3)")
    for aggregate in ("sum(wait)", "avg(wait)"):
        query = Query(time="ts", windows=MINUTES, aggregates=[aggregate])
        with pytest.raises(Exception, match=r"\[INTERVAL_ARITHMETIC_OVERFLOW\.WITH_SUGGESTION\]"):
            planned(query).run(events).collect()


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_decimal_mean_may_have_all_the_digits_of_its_type(spark, configured, ansi):
    configured(ansi=ansi)
    events = spark.sql(
        """SELECT timestamp_micros(id * 20000000) AS ts, CAST(50000000000000 + id AS DECIMAL(38,20)) AS many,
                  CAST(-99999999999999.99999999999999999999 AS DECIMAL(38,20)) AS most,
                  CAST('9999999999999999999999999999999999' AS DECIMAL(38,0)) + id AS over,
                  CAST('-5000000000000000000000000000000003' AS DECIMAL(38,0)) + id AS whole FROM range(14)"""
    )
    aggregates = ["avg(many)", "try_avg(many)", "avg(most)", "try_avg(over)", "try_sum(over)", "avg(whole)"]
    assert_as_naive(Query(time="ts", windows=MINUTES, aggregates=aggregates), events)


@pytest.mark.parametrize("way", ["batch", "packs", "chunks"])
def test_a_part_may_overflow_where_no_window_does(spark, way):
    events = spark.sql(
        """SELECT timestamp_micros(id * 20000000) AS ts, 'a' AS k,
                  IF(id % 6 < 3, 1, -1) * 9000000000000000000L + id AS long FROM range(36)"""
    )
    query = Query(
        time="ts", keys=["k"], windows=[tumbling("2 minutes"), tumbling("6 minutes")], aggregates=["sum(long)"]
    )
    plan = optimize(query, search="factor", rate=100, unit="1 second")
    # With a look at so few events the query would run as it is, and Spark's own sum overflows on the way.
    found = plan.run(events, statistics=None) if way == "batch" else _forced(way)(plan, events)
    assert [row[-1] for row in rows(found)] == [15, 51, 87, 123, 159, 195, 153, 477]


def test_longs_wrap_without_ansi_mode_as_sparks_do(spark, configured):
    configured(ansi="false")
    events = spark.sql("SELECT timestamp_micros(id * 20000000) AS ts, 9223372036854775807L - id AS long FROM range(40)")
    assert_as_naive(Query(time="ts", windows=MINUTES, aggregates=["sum(long)", "try_sum(long)"]), events)


def test_distinct_times_of_a_repeated_hour_are_told_apart(spark, configured):
    configured(zone="America/New_York")
    events = spark.range(180).selectExpr("timestamp_micros((1730608200 + id * 60) * 1000000) AS ts")
    windows = [tumbling("1 hour"), tumbling("12 hours")]
    query = Query(time="ts", windows=windows, aggregates=["approx_count_distinct(ts) AS times"])
    found = optimize(query, search="coverage", rate=100, unit="1 minute").run(events, statistics=None)
    assert [row.times for row in found.where("window_id = '12 hours'").collect()] == [180]


def test_nan_is_the_greatest_for_approximate_percentiles(spark):
    events = spark.sql(
        """SELECT timestamp_micros(id * 60000000) AS ts, CASE WHEN id % 6 < 1 THEN CAST(NULL AS DOUBLE)
                  WHEN id % 6 < 3 OR id >= 6 THEN double('NaN') WHEN id = 3 THEN double('Infinity') ELSE id END AS x
           FROM range(13)"""
    )
    aggregates = ["approx_percentile(x, 0.5)", "approx_percentile(x, array(0, 0.2, 0.6, 1))",
                  "approx_percentile(CAST(x AS FLOAT), 0.6)"]  # fmt: skip
    query = Query(time="ts", windows=MINUTES, aggregates=aggregates)
    found = planned(query).run(events)
    assert schema(found) == schema(naive(query, events))
    nan, inf = float("nan"), float("inf")
    six = [row[3:] for row in rows(found) if row[0] == "6 minutes"]
    assert repr(six) == repr([(inf, [4.0, 4.0, inf, nan], inf), (nan, [nan] * 4, nan), (None, None, None)])
    assert sorted(repr(row[3]) for row in rows(found) if row[0] == "1 minute") == sorted(
        ["None", "nan", "nan", "inf", "4.0", "5.0", "None", *["nan"] * 5, "None"]
    )


def test_maps_are_keys_also_inside_structs_and_arrays(events):
    keys = ["m", "array(m) AS listed", "struct(m, k) AS both", "k"]
    assert_as_naive(Query(time="ts", keys=keys, windows=MINUTES, aggregates=["count(*)", "min(n)"]), events)


def test_double_quotes_are_names_where_the_session_says_so(events, configured):
    query = Query(
        time="ts", keys=['"k" AS kk'], windows=MINUTES, aggregates=['max("n") AS most', "count_if(\"k\" = 'k')"]
    )
    assert_as_naive(query, events)
    configured(**{"spark.sql.ansi.doubleQuotedIdentifiers": "true"})
    assert_as_naive(query, events)


@pytest.mark.parametrize("way", ["packs", "chunks", "keys"])
def test_nullability_is_sparks_own_however_it_runs(spark, way):
    events = spark.sql(
        "SELECT timestamp_micros(id * 9000000) AS ts, id % 2 AS k, 'x' AS s, id AS n, nullif(id, 3) AS m FROM range(60)"
    )
    aggregates = ["count(*)", "count(m)", "count_if(n > 3)", "min(n)", "sum(n)", "regr_count(n, m)"]
    query = Query(time="ts", keys=["k", "s"], windows=MINUTES, aggregates=aggregates)
    assert_as_naive(query, events, found=_forced(way)(planned(query), events))
