"""Figures as SVG, without matplotlib: those of its methods that the course's pages use, under its names.

A page that runs its own cells in a browser has no matplotlib. So `common.figures` draws with this package, and a
plot is written as for matplotlib: axes from `Figure.subplots`, then `plot`, `text`, `set` … A setting that no page
uses is not here, and Python says so; a test says it to authors.

    figure.py   Figure: size, rows and columns of axes, how much room each gets
    axes.py     Axes: what is drawn in one of them, and how
    frame.py    what stands around it: lines, ticks, grid, title, names
    axis.py     the numbers along x or y: limits and ticks
    legend.py   samples and names of marks, and where they hide least
    scales.py   from a number to a place, and where round numbers are: linear and logarithmic
    marks.py    what can be drawn: lines, dots, bands, rectangles, images, words
    contour.py  lines of equal height
    words.py    text in SVG: its estimated width, lines, subscripts
"""

from bert_course.common.drawing.axes import Axes
from bert_course.common.drawing.figure import Figure
from bert_course.common.drawing.marks import Rectangle

__all__ = ["Axes", "Figure", "Rectangle"]
