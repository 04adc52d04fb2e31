"""What can go wrong: one base error and a few kinds, each naming the bad value and what is allowed."""


class FactorWindowsError(ValueError):
    """The base of every error that a user's own input can cause."""


class WindowError(FactorWindowsError):
    """A window or a duration that cannot exist."""


class AggregateError(FactorWindowsError):
    """An aggregate that cannot be read, or is not supported."""


class QueryError(FactorWindowsError):
    """A query whose parts do not fit together."""


class SqlError(QueryError):
    """A SQL text that is no SQL, or asks for what cannot be done; says where."""


class OptionError(FactorWindowsError):
    """An option of `optimize` that is outside its allowed values."""


class StoreError(FactorWindowsError):
    """A store that cannot be read, or does not fit what is asked of it."""


class StoreConflictError(StoreError):
    """Another writer was faster."""


class PlanError(FactorWindowsError):
    """A plan that would not compute its query."""
