"""`factor-windows calibrate`: the prices of your Spark."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from factor_windows.cli.options import Json, SparkOptions, expand_options


@expand_options
def calibrate(
    options: SparkOptions,
    output: Annotated[Path, typer.Option(help="Where to write the prices.")] = Path("prices.json"),
    as_json: Json = False,
) -> None:
    """Measure how long your Spark takes for each kind of work, for explain --prices."""
    from factor_windows.spark.calibrate import fit, measure

    with options.session() as spark:
        fitted = fit(tuple(measure(spark)))
    fitted.prices.save(output)
    if as_json:
        print(json.dumps(asdict(fitted.prices) | {"error": fitted.error}, indent=2))
        return
    print(f"{'plan':<34} {'measured':>10} {'predicted':>10}")
    for each in fitted.measured:
        print(f"{each.name:<34} {each.seconds:8.2f} s {each.predicted(fitted.prices):8.2f} s")
    print("\nprices in nanoseconds")
    for name, value in asdict(fitted.prices).items():
        print(f"  {name:<8} {value:16,.1f}")
    print(f"\npredictions are off by {fitted.error:.0%} in the median; wrote {output}")
