"""Sphinx's settings for the documentation site: ``make docs`` builds it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
# Dask's workers in the gallery would tell the terminal when they start and end.
os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "error")

import lloydia  # noqa: E402

project = "Lloydia"
author = "The Lloydia developers"
copyright = f"2026, {author}"
version = release = lloydia.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "myst_parser",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # Of this site, in _ext.
    "api_pages",
    "benchmark_pages",
    "command_pages",
    "repository_links",
]
templates_path = ["_templates"]
exclude_patterns = ["_ext", "benchmarks/results/*/*"]
suppress_warnings = [
    # A function of the templates makes the configuration one that cannot be kept on disk.
    "config.cache",
    # The ladder's page, which a command writes, leaves out a level of headings.
    "myst.header",
]
# In docstrings a name between single backticks is code.
default_role = "code"
# Quotes and dashes are part of what people type: --columns stays two hyphens.
smartquotes = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
# Links to files that are no pages of this site; repository_links turns them into pages of source.
myst_url_schemes = {"http": None, "https": None, "mailto": None, "source": None}

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_attributes_as_param_list = True

copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = f"Lloydia {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}

sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "examples" / "gallery")],
    "gallery_dirs": ["gallery"],
    # Files of other names are shown and not run.
    "filename_pattern": r"/plot_",
    "within_subsection_order": "gallery_order.GalleryOrder",
    "download_all_examples": False,
    "show_signature": False,
    # What an example prints is shown, and not what its last line returns.
    "capture_repr": (),
    "show_memory": False,
    # Times of one machine are no use to a reader.
    "min_reported_time": 3600,
    "remove_config_comments": True,
    "write_computation_times": False,
    "plot_gallery": "True",
}
