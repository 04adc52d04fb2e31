"""SQL over one small table, which Spark runs itself: every text must give the same with this library.

The table is `r(ts, k, site, v, n, dec, ok, payload struct<dev, code>)`; `d(k, label)` is a small table to join with.
"""

import datetime
from decimal import Decimal

W, H, HOP = "window(ts, '1 minute')", "window(ts, '5 minutes')", "window(ts, '4 minutes', '1 minute')"

ALIASES = [
    # GROUP BY takes a column of FROM before an alias.
    f"SELECT k, upper(k) AS site, window.start AS s, count(*) AS n FROM r GROUP BY k, site, {W}",
    f"SELECT upper(k) AS k, max(v) AS m FROM r GROUP BY k, {W}",
    f"SELECT site AS k, k AS site, max(v) AS v FROM r GROUP BY k, site, {W}",
    f"SELECT lower(k) AS low, max(v) AS m FROM r GROUP BY low, {W}",
    "SELECT lower(k) AS low, window(ts, '1 minute') AS w, max(v) AS m FROM r GROUP BY low, w",
    f"SELECT n % 2 AS n, max(v) AS m FROM r GROUP BY n, {W}",
    f"SELECT ok AS v, max(v) AS m FROM r GROUP BY ok, {W}",
    f"SELECT r.k, x.n FROM (SELECT k, max(n) AS n FROM r GROUP BY k, {W}) x JOIN d r ON r.k = x.k",
    # HAVING takes what is grouped, then an alias; inside an aggregate it takes columns.
    f"SELECT k, max(v) AS n FROM r GROUP BY k, {W} HAVING n > 3",
    f"SELECT k, max(v) AS v FROM r GROUP BY k, {W} HAVING v > 3",
    f"SELECT k, max(v) AS n FROM r GROUP BY k, {W} HAVING n + max(n) > 3",
    f"SELECT upper(k) AS k, max(v) AS m FROM r GROUP BY k, {W} HAVING k = 'a'",
    f"SELECT upper(k) AS site, max(v) AS m FROM r GROUP BY k, site, {W} HAVING site = 's'",
    f"SELECT upper(k) AS big, max(v) AS m FROM r GROUP BY k, {W} HAVING big = 'A'",
    f"SELECT max(v) AS v FROM r GROUP BY {W} HAVING count(*) FILTER (WHERE v > 0) > 0",
    f"SELECT k, max(v) AS v FROM r GROUP BY k, {W} HAVING sum(v) FILTER (WHERE v > 0) > 1 AND v < 4",
    # The SELECT list takes columns, then earlier aliases.
    f"SELECT max(v) AS q, q + 1 AS m, m * 2 AS z FROM r GROUP BY k, {W}",
    f"SELECT max(v) AS n, n + 1 AS m FROM r GROUP BY k, n, {W}",
    f"SELECT upper(k) AS site, site || 'x' AS m, max(v) FROM r GROUP BY k, site, {W}",
    f"SELECT upper(k) AS q, q || 'x' AS m, max(v) FROM r GROUP BY q, {W}",
    "SELECT window(ts, '1 minute') AS w, w.start, w.end AS e, max(v) AS m FROM r GROUP BY w",
    f"SELECT window.start AS s, s + INTERVAL 1 HOUR AS later, max(v) AS m FROM r GROUP BY {W}",
]
FIELDS = [
    f"SELECT x.payload.dev, max(v) FROM r x GROUP BY x.payload.dev, {W}",
    f"SELECT payload.dev, payload.code + 1, count(*) FROM r GROUP BY payload.dev, payload.code, {W}",
    f"SELECT r.payload.dev AS k, max(r.v) FROM r GROUP BY r.payload.dev, {W}",
    f"SELECT payload.dev, max(payload.code) FROM r GROUP BY payload, {W}",
    f"SELECT x.k, max(x.v), x.site FROM r AS x GROUP BY k, x.site, {W}",
    f"SELECT k, max(v) FROM r AS payload WHERE payload.ok GROUP BY payload.k, {W}",
]
NAMES = [
    f"SELECT struct(max(n), 1, k, window.start), date'2024-01-01' AS d, 1.50BD AS b, window AS w FROM r "
    f"GROUP BY k, {HOP}",
    f"SELECT {W}, max(v) FROM r GROUP BY {W}",
    f"SELECT {W}.start, {W}.end, max(v) FROM r GROUP BY {W}",
    f"SELECT window, window.start, window.end, count(*), sum(n), avg(n) FROM r GROUP BY {W}",
    f"SELECT -max(v), max(n) IN (1, 2), max(n) BETWEEN 1 AND 3, 1e3, 5L FROM r GROUP BY k, {W}",
    f"SELECT window.start + INTERVAL 1 HOUR, window.end - window.start, +max(n) FROM r GROUP BY {W}",
    f"SELECT NOT bool_or(ok), max(n) IS NULL, CASE WHEN max(n) > 1 THEN 'a' ELSE 'b' END, k || 'x' FROM r "
    f"GROUP BY k, {W}",
    f"SELECT max(n)::string, CAST(max(v) AS INT), 'a', 1.5, NULL, true FROM r GROUP BY {W}",
    f"SELECT max(v) + 1, (max(v) - min(v)) / 2, max(n) % 3, max(n) & 1, count(DISTINCT n) FROM r GROUP BY {W}",
    f"SELECT k, k, max(v) FROM r GROUP BY k, {W}",
    f"SELECT k, K, max(v) AS k FROM r GROUP BY k, {W}",
    f"SELECT '{{result}}' AS braces, '{{{{x}}}}', max(v) AS `{{result0}}` FROM r WHERE k <> '{{' GROUP BY {W}",
    f"SELECT `max(v)` * 2 AS twice FROM (SELECT k, max(v) FROM r GROUP BY k, {W})",
    f"SELECT DISTINCT '{{result}}' AS braces, k FROM r GROUP BY k, {W} ORDER BY k LIMIT 3",
]
GROUPS = [
    f"SELECT k, {W}, max(v) AS m FROM r GROUP BY ALL",
    f"SELECT {W}.start, upper(k) AS big, max(v) AS m, 1 AS one FROM r GROUP BY ALL HAVING m > 1",
    f"SELECT lower(k) AS k, {W} AS w, max(v) AS v FROM r GROUP BY 1, 2",
    f"SELECT window.start AS s, max(v) AS v FROM r GROUP BY {W}, s",
    f"SELECT k, window.start FROM r GROUP BY k, {W}",
    f"SELECT DISTINCT k FROM r GROUP BY k, {W}",
    f"SELECT k, max(v) FROM r GROUP BY k, {W}, k",
    "SELECT upper(K) AS big, max(V) FROM R GROUP BY UPPER(k), Window(TS, '1 minute')",
]
SETS = [
    f"SELECT k = 'a' AS is_a, site IS NULL, max(v) AS m FROM r GROUP BY CUBE(k = 'a', site IS NULL), {W}",
    f"SELECT round(dec, 1), abs(dec), dec, k, max(v) FROM r GROUP BY ROLLUP(dec, k), {W}",
    f"SELECT k, site, grouping_id() AS g, max(v) AS m FROM r GROUP BY ROLLUP(k, site), {W}",
    f"SELECT k, grouping_id(), grouping__id AS g, grouping(k), max(v) FROM r GROUP BY {W}, CUBE(k)",
    f"SELECT coalesce(k, 'all') AS k, nvl(n, -1) AS n, max(v) AS m FROM r "
    f"GROUP BY GROUPING SETS ((k, {W}), (n, {W}), ({W}))",
    f"SELECT k, n, dec * 2 AS two, row_number() OVER (PARTITION BY k, n, dec ORDER BY window.start) AS nth, "
    f"grouping(dec) AS g FROM r GROUP BY {W}, ROLLUP(k, n, dec) HAVING dec IS NULL OR dec < 2",
    f"SELECT DISTINCT k, site FROM r GROUP BY {W}, CUBE(k, site)",
    f"SELECT lower(k) AS low, concat(lower(k), '!') AS loud, max(v) AS m FROM r GROUP BY ROLLUP(lower(k)), {W}",
]
AFTERWARDS = [
    f"SELECT DISTINCT k, max(n) AS m FROM r GROUP BY k, {W} ORDER BY m DESC, k",
    f"SELECT k, row_number() OVER (PARTITION BY k ORDER BY max(v), window.start) AS rn FROM r GROUP BY k, {W}",
    f"SELECT k, window.start AS s, row_number() OVER (PARTITION BY k ORDER BY max(v), window.start) AS rn FROM r "
    f"GROUP BY k, {W} QUALIFY rn = 1",
    f"SELECT k, window.start AS s, max(v) AS m FROM r GROUP BY k, {W} "
    f"QUALIFY rank() OVER (PARTITION BY s ORDER BY m DESC) = 1",
    f"SELECT k, window.start AS s, sum(sum(n)) OVER (PARTITION BY k ORDER BY window.start) AS running FROM r "
    f"GROUP BY k, {W}",
    f"SELECT k, lag(max(v)) OVER (PARTITION BY k ORDER BY window.start) AS last, max(v) - avg(max(v)) OVER () AS off "
    f"FROM r GROUP BY k, {W} HAVING count(*) > 0",
    f"SELECT k, sum(max(v)) OVER w AS t FROM r GROUP BY k, {W} WINDOW w AS (PARTITION BY k ORDER BY window.start)",
    f"SELECT k, max(v) AS m, (SELECT max(label) FROM d) AS top FROM r GROUP BY k, {W} HAVING m > (SELECT 1)",
    f"SELECT k, max(v) FROM r GROUP BY k, {W} ORDER BY window.start, max(n), k",
    f"SELECT k, max(v) AS m FROM r GROUP BY k, {W} ORDER BY m + 1, k, window.start",
    f"SELECT upper(k) AS k, max(v) AS n FROM r GROUP BY k, {W} ORDER BY k, n, window.end DESC LIMIT 7",
    f"SELECT lower(k) AS k, max(v) AS v, window.start AS s FROM r GROUP BY 1, {W} ORDER BY 1, 2 DESC, 3",
    f"SELECT k, max(v) AS m FROM r GROUP BY k, {W} ORDER BY sum(n) DESC, r.k, window.start LIMIT 5",
    f"SELECT * FROM (SELECT k, max(v) AS m FROM r GROUP BY k, {W} ORDER BY m DESC, k, window.start LIMIT 4) "
    "WHERE m > 0",
    f"SELECT * FROM (SELECT k, site, max(n) AS m FROM r GROUP BY k, site, {W}) PIVOT (max(m) FOR site IN ('s', 'i'))",
    f"SELECT k, max(v) AS m, window.start AS s FROM r GROUP BY k, {W} ORDER BY ALL LIMIT 3 OFFSET 2",
]
SOURCES = [
    f"SELECT k, max(v) FROM (SELECT * FROM r) GROUP BY k, {W}",
    f"SELECT s.k, max(v) FROM (SELECT * FROM r WHERE ok) s GROUP BY k, {W}",
    f"SELECT a, max(b) FROM (SELECT ts, v, k, n AS a FROM r) PIVOT (max(v) FOR k IN ('a' AS x, 'b' AS b)) "
    f"GROUP BY a, {W}",
    f"SELECT e, k, max(v) FROM r LATERAL VIEW explode(array(n, n + 1)) t AS e GROUP BY e, k, {W}",
    f"SELECT d.label, r.k, max(v), count(*) AS c FROM r JOIN d ON r.k = d.k GROUP BY d.label, r.k, {W}",
    f"SELECT d.label, max(v) AS v FROM r LEFT JOIN d USING (k) GROUP BY d.label, {W} HAVING v > 1 ORDER BY label, v",
    f"SELECT a.k, max(v) FROM r a, d b WHERE a.k = b.k AND b.label <> 'z' GROUP BY a.k, {W}",
    "SELECT k, max(v) FROM VALUES (timestamp'2024-01-01', 1, 2), (timestamp'2024-01-01 00:00:30', 1, 3) "
    "AS t(ts, k, v) "
    f"GROUP BY k, {W}",
    "SELECT id % 2 AS odd, count(*) AS c FROM range(9) GROUP BY odd, window(timestamp_seconds(id * 30), '1 minute')",
    f"SELECT t.a, max(c) FROM r AS t(ts, a, b, c, e, f, g, h) GROUP BY t.a, {W}",
    f"SELECT k, max(v) FROM r WHERE k IN (SELECT k FROM d) GROUP BY k, {W}",
    "SELECT u.k, max(v) FROM (SELECT * FROM r WHERE n > 1 UNION ALL SELECT * FROM r WHERE n < 1) AS u "
    f"GROUP BY u.k, {W}",
    "WITH good AS (SELECT *, n AS again FROM r WHERE ok), "
    f"w AS (SELECT again, max(v) AS m FROM good GROUP BY again, {W}) "
    f"SELECT again, count(*) AS c, sum(m) FROM w GROUP BY again",
    "WITH a(t, b) AS (SELECT ts, k FROM r) SELECT b, count(*) FROM a GROUP BY b, window(t, '1 minute')",
]
UNIONS = [
    f"SELECT window AS w, max(n) AS m FROM r GROUP BY {HOP} UNION ALL SELECT window, count(*) FROM r GROUP BY {W}",
    f"SELECT 'a' AS w, k, count(*) AS c FROM r GROUP BY k, {W} UNION ALL SELECT 'b', k, sum(n) FROM r GROUP BY k, {H}",
    f"SELECT k, max(v) AS m FROM r WHERE ok GROUP BY k, {W} UNION ALL SELECT k, min(v) FROM r GROUP BY k, {HOP} "
    f"ORDER BY k, m LIMIT 9",
    f"SELECT k, max(n) FROM r GROUP BY k, {W} UNION SELECT k, count(*) FROM r GROUP BY k, {H}",
    f"SELECT k, max(n) AS m FROM r GROUP BY k, {W} UNION ALL SELECT site, max(n) FROM r GROUP BY site, {H}",
    f"(SELECT k, max(v) AS m FROM r GROUP BY k, {W} ORDER BY m DESC, k, window.start LIMIT 2) UNION ALL "
    f"SELECT k, max(v) FROM r GROUP BY k, {H}",
    f"SELECT k, max(n) FROM r GROUP BY k, {W} EXCEPT SELECT k, max(n) FROM r GROUP BY k, {H}",
    f"SELECT DISTINCT k, max(n) FROM r GROUP BY k, {W} UNION ALL "
    f"SELECT k, row_number() OVER (ORDER BY k, window.start) FROM r GROUP BY k, {H}",
    f"SELECT site AS k, max(n) AS n FROM r GROUP BY site, {W} INTERSECT SELECT k, n FROM r",
]
TEXTS = [*ALIASES, *FIELDS, *NAMES, *GROUPS, *SETS, *AFTERWARDS, *SOURCES, *UNIONS]

SCHEMA = (
    "ts timestamp, k string, site string, v double, n int, dec decimal(10,2), ok boolean, "
    "payload struct<dev: string, code: int>"
)


def rows(count=40):
    """Make the events of `r`: every 10 seconds one, with nulls among the keys."""
    begin = datetime.datetime(2024, 1, 1)
    return [
        (
            begin + datetime.timedelta(seconds=10 * i),
            ("a", "b", None)[i % 3],
            "site"[i % 4],
            float(i % 7) - 2,
            i % 5,
            Decimal(i % 6) / 2,
            i % 2 == 0,
            (f"x{i % 2}", i % 3),
        )
        for i in range(count)
    ]
