"""Sphinx: how the documentation is built (make docs)."""

import platform
from importlib.metadata import version as installed_version
from xml.etree import ElementTree

import ziamath
from docutils import nodes

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
html_math_renderer = "svg"
html_static_path = ["_static"]
html_css_files = ["formulas.css", "print.css"]
exclude_patterns = ["_build", "results/data", "examples"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
myst_enable_extensions = ["dollarmath", "deflist", "attrs_block", "substitution"]
BESIDE = ("numpy", "scipy", "pandas", "scikit-learn", "torch", "numba")
myst_substitutions = {
    "versions": f"condshap {release}, Python {platform.python_version()}, "
    + ", ".join(f"{name} {installed_version(name)}" for name in BESIDE)
}
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


ziamath.config.svg2 = False  # glyphs as plain paths: symbols of different formulas would share their names
EM = 16  # an em of the text, where glyphs have 18: their font looks smaller. Lengths are in em and grow with the text


def setup(app):
    app.add_html_math_renderer("svg", (_inline_math, None), (_block_math, None))


def _inline_math(self, node):
    self.body.append(_picture(node.astext(), inline=True))
    raise nodes.SkipNode


def _block_math(self, node):
    """What \\qquad keeps apart stands side by side where there is room, else one below the other."""
    parts = [_picture(tex, inline=False) for tex in node.astext().split(r"\qquad")]
    self.body.append(f'<div class="math">{"".join(parts)}</div>')
    raise nodes.SkipNode


def _picture(tex, *, inline):
    """A formula as paths in the page itself: the same in every browser and in print, without fonts or network.

    Screen readers get MathML, which is not drawn.
    """
    formula = ziamath.Latex(" ".join(tex.split()), size=18, inline=inline)
    svg = formula.svgxml()
    for part in svg.iter():
        if part.get("fill") == "black":
            part.set("fill", "currentColor")  # in the dark theme, too
    depth, width, height = formula.getyofst(), float(svg.get("width")), float(svg.get("height"))
    svg.attrib.pop("height")  # follows from the width, also where a narrow screen makes it smaller
    size = f"width: {width / EM:.3f}em; height: auto; aspect-ratio: {width:.3f} / {height:.3f}"
    at_least = "" if inline else f"; min-width: {width / EM / 2:.3f}em"
    svg.set("width", f"{width / EM:.3f}em")
    svg.set(
        "style", f"{size}; vertical-align: {(depth - 1) / EM:.3f}em{at_least}"
    )  # a unit of padding below the glyphs
    svg.set("aria-hidden", "true")
    spoken = f'<math class="spoken">{formula.mathmlstr()}</math>'
    return f'<span class="formula">{ElementTree.tostring(svg, encoding="unicode")}{spoken}</span>'
