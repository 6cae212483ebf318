"""Gallery examples -> the README's pictures: python docs/pictures.py

The pictures of the pages themselves are drawn anew by every build; the README needs files.
"""

import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
PICTURES = {"dependence": ("plot_01_dependence", 0), "beeswarm": ("plot_02_pipeline", 1)}  # name: example, which figure


def draw(name: str) -> Path:
    """Run the example of a picture and keep one of its figures, small enough for a page."""
    example, which = PICTURES[name]
    figures = []
    plt.show = lambda: figures.append(plt.gcf())
    runpy.run_path(str(HERE / "examples" / f"{example}.py"))
    path = HERE / "pictures" / f"{name}.png"
    figures[which].savefig(path, dpi=100, bbox_inches="tight", metadata={"Software": None})
    plt.close("all")
    return path


if __name__ == "__main__":
    for wanted in sys.argv[1:] or PICTURES:
        print(draw(wanted))
