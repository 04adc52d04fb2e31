"""How a plan runs: `physical.compile(plan, target)` decides it once, and engines only render it."""

from factor_windows.physical.compiler import compile as compile  # noqa: A004
from factor_windows.physical.physical_plan import PhysicalPlan as PhysicalPlan
from factor_windows.physical.target import Target as Target
