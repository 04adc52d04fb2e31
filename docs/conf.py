"""The documentation site, as Sphinx builds it: `make docs`. Needs no network."""

from __future__ import annotations

import sys
from pathlib import Path

from factor_windows import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "factor-windows"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "pictures"]
exclude_patterns = ["benchmarks-notes.md"]

myst_heading_anchors = 3
highlight_language = "text"
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 80
copybutton_exclude = ".linenos, .gp, .go"
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"

html_theme = "furo"
html_title = f"factor-windows {__version__}"
html_static_path = html_css_files = ["pages.css"]
html_show_sourcelink = False
html_copy_source = False
html_domain_indices = False
html_show_copyright = False
