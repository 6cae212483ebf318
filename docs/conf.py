"""Sphinx: how the documentation is built (make docs)."""

from importlib.metadata import version as installed_version

project = "condshap"
author = "The condshap developers"
copyright = "The condshap developers"
release = version = installed_version("condshap")

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode", "numpydoc", "myst_parser"]
html_theme = "furo"
html_title = f"condshap {release}"
exclude_patterns = ["_build", "results/data"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
