"""Errors: one base class and a few kinds, each naming the invalid value and what is allowed."""


class FactorWindowsError(ValueError):
    """The base class of every error that a user's input can cause."""


class WindowError(FactorWindowsError):
    """A window or a duration that cannot exist."""


class AggregateError(FactorWindowsError):
    """An aggregate that cannot be read, or is not supported."""


class QueryError(FactorWindowsError):
    """A query whose parts do not fit together."""


class SqlError(QueryError):
    """A SQL text that is invalid, or asks for something unsupported; the error says where."""


class OptionError(FactorWindowsError):
    """An option of `optimize` that is outside its allowed values."""


class StoreError(FactorWindowsError):
    """A store that cannot be read, or does not fit the request."""


class StoreConflictError(StoreError):
    """Another writer committed first."""


class PlanError(FactorWindowsError):
    """A plan that would not compute its query."""
