"""SQL with Jinja in it, as in dbt's models: the parts that dbt fills in are set aside while the query is rewritten."""

from __future__ import annotations

import re
from dataclasses import dataclass

from factor_windows.errors import SqlError
from factor_windows.functions.naming import prefix_until_free

_PART = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/"""
    r"""|(?P<jinja>\{\{.*?\}\}|\{%.*?%\}|\{\#.*?\#\})""",
    re.DOTALL,
)
"""Matches Jinja, and what may contain it: inside quotes it is text to SQL as well, and stays."""
_BEFORE_A_TABLE = re.compile(r"\b(FROM|JOIN|TABLE)\s*$", re.IGNORECASE)
_COMMENTS = re.compile(r"(\s|--[^\n]*\n|/\*.*?\*/)*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Template:
    """A text whose tables may be named by Jinja."""

    query: str
    """The text with a plain name for each of these tables."""
    head: str = ""
    """The Jinja before the query, such as `{{ config(...) }}`."""
    tables: tuple[tuple[str, str], ...] = ()
    """Each plain name with the Jinja that it stands for."""

    @classmethod
    def of(cls, text: str) -> Template:
        r"""Take a text apart.

        >>> template = Template.of("{{ config(x=1) }} SELECT max(v) FROM {{ ref('r') }} GROUP BY window(ts, '1 hour')")
        >>> template.query
        " SELECT max(v) FROM fw_table0 GROUP BY window(ts, '1 hour')"
        >>> template.fill("SELECT 1 FROM `fw_table0`")
        "{{ config(x=1) }}\nSELECT 1 FROM {{ ref('r') }}"
        """
        name = prefix_until_free("fw_table", text.lower())
        head: list[str] = []
        tables: list[tuple[str, str]] = []
        query, last = "", 0
        for part in _PART.finditer(text):
            jinja = part["jinja"]
            if not jinja:
                continue
            query += text[last : part.start()]
            last = part.end()
            if jinja.startswith("{#"):
                continue
            if _COMMENTS.fullmatch(query):
                head.append(jinja)
            elif jinja.startswith("{{") and _BEFORE_A_TABLE.search(query):
                tables.append((f"{name}{len(tables)}", jinja))
                query += tables[-1][0]
            else:
                raise SqlError(_refusal(text, part))
        return cls(query + text[last:], "\n".join(head), tuple(tables))

    def fill(self, text: str) -> str:
        """Put the Jinja back into a text that was made from the query."""
        # The last one comes first: the name of the tenth begins with that of the first.
        for name, jinja in reversed(self.tables):
            text = text.replace(f"`{name}`", jinja).replace(name, jinja)
        return f"{self.head}\n{text}" if self.head else text


def _refusal(text: str, part: re.Match[str]) -> str:
    before = text[: part.start()]
    place = f"line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"
    return (
        f"{place}: {part[0]} is Jinja, which may name a table, as in FROM {{{{ ref('readings') }}}}, or stand in "
        "quotes or before the query; for the rest, rewrite what `dbt compile` has made of it"
    )
