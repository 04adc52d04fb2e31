"""The SQL dialects that can be read: Spark's, Azure Stream Analytics' and Flink's, each with its own windows.

One grammar serves all three; they differ in how names and strings are quoted.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from factor_windows.functions.expression import VerbatimSpark

TIMESTAMP_BY = "timestamp_by"
"""The key under which a table keeps the expression of its TIMESTAMP BY."""
WINDOW_PARTS = "window_parts"
"""The key under which a window's text keeps what follows it: pairs of a word and a text, such as IN 'Europe/Berlin'."""
WINDOW_WORDS = ("SLIDE", "OFFSET", "STEP", "ORIGIN", "IN")

_AZURE_WORDS = {"TUMBLINGWINDOW", "HOPPINGWINDOW", "SLIDINGWINDOW", "SESSIONWINDOW", "SNAPSHOTWINDOW"}
_FLINK_WORDS = {"TUMBLE", "HOP", "CUMULATE", "SESSION"}


class WindowedSpark(VerbatimSpark):
    """Spark SQL with `window` as a plain name, TIMESTAMP BY after a table, tables as arguments, zones of windows."""

    class Tokenizer(VerbatimSpark.Tokenizer):
        """Allows `window` as a function and a column, and SESSION as a function."""

        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: kind for word, kind in VerbatimSpark.Tokenizer.KEYWORDS.items() if word not in ("WINDOW", "SESSION")
        }

    class Parser(VerbatimSpark.Parser):
        """Adds the constructs with a grammar of their own."""

        def _parse_table_alias(self, *args: Any, **options: Any) -> exp.TableAlias | None:
            return None if self._at_timestamp_by() else super()._parse_table_alias(*args, **options)

        def _parse_table(self, *args: Any, **options: Any) -> exp.Expr | None:
            table = super()._parse_table(*args, **options)
            if table is not None and self._at_timestamp_by():
                self._advance(2)
                time = self._parse_disjunction()
                if time is None:
                    self.raise_error("TIMESTAMP BY without a column")
                table.meta[TIMESTAMP_BY] = time
            return table

        def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
            if self._curr and self._next and [self._curr.text.upper(), self._next.text] == ["DATA", "=>"]:
                self._advance(2)
                return self.expression(exp.Kwarg(this=exp.var("DATA"), expression=self._parse_lambda(alias=alias)))
            if self._curr and self._curr.token_type == TokenType.TABLE and self._next.token_type != TokenType.L_PAREN:
                self._advance()
                table: exp.Expr | None = self._parse_table_parts()
                return table
            if self._curr and self._curr.token_type == TokenType.STRING and self._at_window_part(1):
                return self._parse_window_text(alias)
            return super()._parse_lambda(alias=alias)

        def _parse_window_text(self, alias: bool) -> exp.Expr | None:
            """Read a window text such as '1 month' IN 'Europe/Berlin' STEP '1 day' AS mtd."""
            text = self._parse_text(self._curr)
            self._advance()
            parts = []
            while self._at_window_part(0):
                parts.append((self._curr.text, self._next.text))
                self._advance(2)
            text.meta[WINDOW_PARTS] = tuple(parts)
            return self._parse_alias(text, explicit=True) if alias else text

        def _at_window_part(self, ahead: int) -> bool:
            tokens = self._tokens[self._index + ahead : self._index + ahead + 2]
            return (
                len(tokens) == 2
                and tokens[0].text.upper() in WINDOW_WORDS
                and tokens[0].token_type != TokenType.STRING
                and tokens[1].token_type == TokenType.STRING
            )

        def _parse_query_modifiers(self, this: Any) -> Any:
            this = super()._parse_query_modifiers(this)
            # WINDOW is a plain word here, so that a function and a column can have this name.
            if isinstance(this, exp.Select) and self._curr and self._curr.text.upper() == "WINDOW":
                self._advance()
                this.set("windows", self._parse_csv(self._parse_named_window))
                this = super()._parse_query_modifiers(this)
            return this

        def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
            """Read keys that are also conditions, such as CUBE(k = 'a')."""
            if with_prefix or not self._match_set((TokenType.CUBE, TokenType.ROLLUP)):
                return super()._parse_cube_or_rollup(with_prefix)
            kind = exp.Cube if self._prev.token_type == TokenType.CUBE else exp.Rollup
            return self.expression(kind(expressions=self._parse_wrapped_csv(self._parse_disjunction)))

        def _parse_grouping_set(self) -> exp.Expr | None:
            return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

        def _at_timestamp_by(self) -> bool:
            return bool(
                self._curr and self._next and [self._curr.text.upper(), self._next.text.upper()] == ["TIMESTAMP", "BY"]
            )


class Azure(WindowedSpark):
    """Azure Stream Analytics: names in square brackets or double quotes."""

    class Tokenizer(WindowedSpark.Tokenizer):
        """Quotes as in T-SQL."""

        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = [("[", "]"), '"', "`"]
        QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]
        STRING_ESCAPES: ClassVar[list[str]] = ["'"]


class Flink(WindowedSpark):
    """Flink SQL: strings in single quotes only."""

    class Tokenizer(WindowedSpark.Tokenizer):
        """Quotes as in standard SQL, with backticks for names."""

        QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]
        STRING_ESCAPES: ClassVar[list[str]] = ["'"]


DIALECTS: dict[str, type[WindowedSpark]] = {"spark": WindowedSpark, "azure": Azure, "flink": Flink}


def recognize_dialect(text: str) -> str:
    """Recognize the dialect by the words that only one of them has."""
    try:
        tokens = WindowedSpark().tokenize(text)
    except TokenError:
        # A quote that ends in Azure's dialect may continue in Spark's, if a backslash precedes it.
        tokens = Azure().tokenize(text)
    words = [token.text.upper() if token.token_type != TokenType.STRING else "" for token in tokens]
    pairs = set(pairwise(words))
    if not _AZURE_WORDS.isdisjoint(words) or ("SYSTEM", ".") in pairs:
        return "azure"
    return "flink" if any((word, "(") in pairs for word in _FLINK_WORDS) else "spark"
