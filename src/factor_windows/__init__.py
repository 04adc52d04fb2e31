"""Aggregates over many windows of one stream for about the price of one. Importing this starts no JVM."""

from factor_windows.errors import (
    AggregateError,
    FactorWindowsError,
    OptionError,
    PlanError,
    QueryError,
    WindowError,
)
from factor_windows.plan import Plan, PlanNode
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.window import Window, hopping, tumbling

__version__ = "0.1.0"
__all__ = [
    "AggregateError",
    "FactorWindowsError",
    "OptionError",
    "Plan",
    "PlanError",
    "PlanNode",
    "Query",
    "QueryError",
    "Window",
    "WindowError",
    "hopping",
    "optimize",
    "tumbling",
]
