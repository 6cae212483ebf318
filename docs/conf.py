"""Sphinx: how the documentation is built (make docs)."""

from importlib.metadata import version as installed_version

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

project = "condshap"
author = "The condshap developers"
copyright = "The condshap developers"
release = version = installed_version("condshap")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
html_theme = "furo"
html_title = f"condshap {release}"
html_math_renderer = "mathml"
exclude_patterns = ["_build", "results/data", "examples"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
myst_enable_extensions = ["dollarmath", "deflist", "attrs_block"]
myst_heading_anchors = 3

# Every example runs once a build, two at a time; one that fails is a warning, and with -W an error.
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "parallel": 2,
}


def setup(app):
    app.add_html_math_renderer("mathml", (_inline_math, None), (_block_math, None))


def _inline_math(self, node):
    self.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block_math(self, node):
    """Formulas as MathML in the page itself: nothing is fetched, and print and screen readers work."""
    self.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode
