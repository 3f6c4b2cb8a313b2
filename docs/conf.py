"""The site: `sphinx-build -M html docs docs/_build -W --keep-going` makes it."""

import sys
from pathlib import Path

from llm_games.version import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "llm-games"
author = "The llm-games authors"
copyright = "2026, the llm-games authors"
release = version = __version__

# What lies in _ext is an extension of ours: what a page is made from stays where it is said.
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    *sorted(path.stem for path in (HERE / "_ext").glob("*.py")),
]
exclude_patterns = ["_build", "_ext", "**/.ipynb_checkpoints"]
nitpicky = False  # annotations name private aliases; links that are written are checked by MyST

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

nb_execution_mode = "cache"
nb_execution_timeout = 600  # a busy machine is no error
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_google_docstring = True
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"llm-games {release}"
html_show_sourcelink = False
html_copy_source = False
