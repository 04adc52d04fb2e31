"""Awkward events: empty, skewed, equal, sparse, at the limits of their types, around changes of clocks and midnight."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession

from fuzzing.settings import Settings
from fuzzing.zones import DAY, ZONES, changes, day_of, first_of, midnight, month_of

COLUMNS = {
    "ts": "timestamp",
    "k": "string",
    "site": "int",
    "my key": "bigint",
    "code": "string",
    "key_0": "date",
    "flag": "boolean",
    "v": "double",
    "f": "float",
    "n": "bigint",
    "i": "int",
    "huge": "bigint",
    "mass": "bigint",
    "d": "decimal(20,5)",
    "wide": "decimal(38,4)",
    "big": "decimal(38,0)",
    "s": "string",
    "kind": "string",
    "txt": "string",
    "sts": "string",
    "odd": "int",
}
"""`mass` and `big` have one sign, so that whether a sum overflows depends on no order; `txt` is a number and `sts` a
time where `kind` is 'r', and neither elsewhere; `odd` goes by a name that is drawn."""
ODD = (
    "odd",
    "__fw_start",
    "__FW_t",
    "__FW_start",
    "__fw_K0",
    "fw_time",
    "Fw_Start",
    "Value_0",
    "KEY_0_",
    "`",
    "count",
    "Feed",
    "x.y",
)
SENSITIVE = ("K", "TS", "V", "Site", "N")
"""Names that only a session that minds the case tells from other columns."""
STARTS = (0, -4_000, 1_700_000_000, 4_200_000_000, -11_676_096_000)
CLOCKS = {
    "America/New_York": (1_730_613_600 - 3_600, 1_710_054_000 - 600),
    "Australia/Lord_Howe": (1_712_415_600 - 1_800, 1_728_142_200 - 600),
    "Asia/Kathmandu": (504_901_800 - 600,),
    "Asia/Kolkata": (-764_145_000 - 600,),
}
"""Seconds shortly before clocks are set back or forward: an hour or half of it comes twice, or never."""
YEARS = (range(1900, 1970), range(1970, 2030), range(1990, 2030), range(1990, 2030), range(2030, 2100))


@dataclass(frozen=True)
class Data:
    """Events; the time's type is `kind`, the column `odd` goes by its name, and calendars are those of `zones`."""

    rows: list[tuple[object, ...]]
    kind: str = "timestamp"
    odd: str = "odd"
    zones: tuple[str, ...] = ()

    def frame(self, spark: SparkSession) -> DataFrame:
        """Make a DataFrame of them; decimals and dates come as text, which Python and Spark read alike."""
        raw = ", ".join(f"{quoted(name)} {_raw(name, kind)}" for name, kind in self.columns.items())
        typed = [
            f"{self._time} AS ts" if name == "ts" else f"CAST({quoted(name)} AS {kind}) AS {quoted(name)}"
            for name, kind in self.columns.items()
        ]
        return spark.createDataFrame(self.rows, raw).selectExpr(*typed)

    @property
    def columns(self) -> dict[str, str]:
        return {self.odd if name == "odd" else name: kind for name, kind in COLUMNS.items()}

    @property
    def _time(self) -> str:
        if self.kind == "timestamp":
            return "timestamp_micros(ts)"
        wall = "TIMESTAMP_NTZ'1970-01-01' + make_dt_interval(0, 0, 0, ts / 1000000BD)"
        return wall if self.kind == "timestamp_ntz" else f"CAST({wall} AS DATE)"

    @property
    def times(self) -> set[int]:
        """List the times that events may have by any column, in microseconds; those of dates are whole days."""
        place = list(COLUMNS).index("sts")
        found = {event[0] for event in self.rows if event[0] is not None}
        found |= {_micros(event[place]) for event in self.rows if event[place] not in (None, "n/a")}
        return found | {time - time % (DAY * 1_000_000) for time in found if self.kind == "date"}

    @property
    def scale(self) -> float:
        """Say how large the values are that floating sums are made of."""
        places = [list(COLUMNS).index(name) for name in ("v", "n", "i")]
        numbers = [abs(row[place]) for row in self.rows for place in places if isinstance(row[place], int | float)]
        return max([1.0, *(number for number in numbers if math.isfinite(number))])


def row(**values: object) -> tuple[object, ...]:
    """Write an event by the columns that are not null.

    >>> row(ts=0, k="a")[:3]
    (0, 'a', None)
    """
    return tuple(values.get(name) for name in COLUMNS)


def written(event: tuple[object, ...]) -> str:
    """Write the call of `row` that makes an event."""
    given = {name: value for name, value in zip(COLUMNS, event, strict=True) if value is not None}
    parts = [f"{name}=" if name.isidentifier() else f"{name!r}: " for name in given]
    plain = [f"{part}{value!r}" for part, value in zip(parts, given.values(), strict=True) if part.endswith("=")]
    others = [f"{part}{value!r}" for part, value in zip(parts, given.values(), strict=True) if not part.endswith("=")]
    text = ", ".join([*plain, *([f"**{{{', '.join(others)}}}"] if others else [])])
    return f"row({text})".replace("=nan", "=math.nan").replace("=inf", "=math.inf").replace("=-inf", "=-math.inf")


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _raw(name: str, kind: str) -> str:
    if name == "ts":
        return "bigint"
    return "string" if kind.startswith("decimal") or kind == "date" else kind


def draw_data(rng: random.Random, settings: Settings) -> Data:
    """Draw a data set that fits a session: near a change of its zone's clocks, with names that it can tell apart."""
    kind = rng.choice(["timestamp"] * 12 + ["timestamp_ntz"] * 5 + ["date"])
    zones = draw_zones(rng, kind)
    size = rng.choice([1, 2, 12, 30, 60] if zones else [0, 1, 2, 12, 60, 60, 150])
    draw = _Rows(rng, settings, zones)
    rows = [draw.row() for _ in range(size)]
    if rng.random() < 0.1 and rows:
        rows = [rows[0]] * size
    if rng.random() < 0.2:
        rows += rows[: size // 2]
    names = [*ODD, *(SENSITIVE if settings.case_sensitive else ())]
    return Data(rows, kind, rng.choice(names), zones)


def draw_zones(rng: random.Random, kind: str) -> tuple[str, ...]:
    """Draw the zones of calendars, for half of the data sets none; what is local time already has no other than UTC."""
    if rng.random() < 0.55:
        return ()
    if kind != "timestamp":
        return ("UTC",)
    return tuple(rng.sample(ZONES, rng.choice([1, 1, 2, 3])))


def draw_edges(rng: random.Random, zones: tuple[str, ...]) -> list[int]:
    """Draw seconds of one year at which clocks are set, and at which days and months of a zone start."""
    year, found = rng.choice(rng.choice(YEARS)), []
    start = first_of((year - 1970) * 12) * DAY
    for zone in zones:
        known = changes(zone, start, start + 366 * DAY)
        edge = rng.choice(known) if known and rng.random() < 0.8 else start + rng.randrange(366) * DAY
        day = day_of(zone, edge)
        month = first_of(month_of(day) + rng.choice([0, 1]))
        found += [edge, edge, *(midnight(zone, each) for each in (day - 1, day, day + 1, month))]
    return found


class _Rows:
    """How the events of one data set are drawn."""

    def __init__(self, rng: random.Random, settings: Settings, zones: tuple[str, ...]) -> None:
        clocks = CLOCKS.get(settings.zone, ())
        near = bool(clocks) and rng.random() < 0.4
        self.rng = rng
        self.edges = draw_edges(rng, zones) if zones and rng.random() < 0.9 else []
        self.start = rng.choice(clocks if near else STARTS) * 1_000_000
        self.span = rng.choice([300, 5_000, 9_000] if near else [1, 20, 300, 300, 5_000])
        self.grain = rng.choice([1_000_000, 500_000, 1, 250_001])
        self.nulls = rng.choice([0, 0.1, 0.1, 0.9])
        self.odd = rng.random() < 0.3
        self.sign = rng.choice([1, -1])
        self.limits = rng.random() < 0.3

    def row(self) -> tuple[object, ...]:
        rng, maybe, time = self.rng, self.maybe, self.time()
        given = rng.random() < 0.6
        return (
            maybe(time),
            maybe(rng.choice(["a", "a", "a", "b", "", "ü", "A"])),
            maybe(rng.randrange(-2, 3)),
            maybe(rng.choice([1, 1, 2, -(2**63), 2**63 - 1])),
            maybe(rng.choice(["p", "q"])),
            maybe(rng.choice(["2024-02-29", "1969-12-31", "0001-01-01"])),
            maybe(rng.random() < 0.5),
            maybe(self.double()),
            maybe(rng.choice([0.5, -2.25, 1e30, -0.0])),
            maybe(rng.randrange(-(2**40), 2**40)),
            maybe(rng.randrange(-5, 5)),
            maybe(rng.choice([2**63 - 1, -(2**63), 0, -1, 7])),
            maybe(self.sign * rng.choice([2**61, 2**62, 1] if self.limits else [7, 2**40, 1])),
            maybe(f"{rng.uniform(-(10**14), 10**14):.5f}"),
            maybe(rng.choice(["9" * 32 + ".9999", "-" + "9" * 32 + ".9999", "0.0001", "1"])),
            maybe(str(self.sign * rng.choice([9 * 10**37, 3 * 10**37, 1] if self.limits else [10**20, 5, 1]))),
            maybe(rng.choice(["", "x", "ü", "x'y", '"', "\\", "a`b", "😀", "X"])),
            "r" if given else maybe("other"),
            str(rng.randrange(4)) if given else "n/a",
            _instant(time) if given else "n/a",
            maybe(rng.randrange(-3, 4)),
        )

    def time(self) -> int:
        rng = self.rng
        if not self.edges:
            second = rng.choice([rng.randrange(self.span), rng.randrange(self.span), 0, self.span])
            return self.start + second * 1_000_000 // rng.choice([1, 1, 2]) + rng.randrange(3) * self.grain
        # At an edge or just before it, minutes, hours or days from it, or somewhere in its season.
        away = rng.choice([0, 0, 600, 7_200, 7_200, 2 * DAY, 50 * DAY])
        second = rng.choice(self.edges) + rng.randint(-away, away)
        return second * 1_000_000 + rng.choice([0, 0, -1, self.grain])

    def maybe(self, value: object) -> object:
        return None if self.rng.random() < self.nulls else value

    def double(self) -> float:
        rng = self.rng
        if self.odd and rng.random() < 0.2:
            return rng.choice([math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324])
        return rng.choice([0.0, 1.5, rng.uniform(-9, 9), rng.uniform(-1e6, 1e6)])


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _instant(micros: int) -> str:
    return f"{EPOCH + timedelta(microseconds=micros):%Y-%m-%d %H:%M:%S.%fZ}"


def _micros(text: object) -> int:
    return (datetime.fromisoformat(str(text)) - EPOCH) // timedelta(microseconds=1)
