"""Roll-ups that are kept up to date: panes of partial results in a folder, read as any windows that they make up."""

from factor_windows.store.store import Store as Store
