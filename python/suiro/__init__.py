"""suiro in Python: results folders as data frames, and the program itself.

>>> import suiro
>>> run = suiro.load("results/first")
>>> run.summary().to_pandas()          # one row per valid trial
>>> run.table("tcp").to_polars()       # all trials, with the cell's columns in front

Nothing of a results folder is executed, and no link in it is followed: it may be a stranger's.
"""

from ._binary import find_binary
from ._files import ResultsError
from ._frame import Frame
from ._names import VERSION
from ._results import Axis, Results, Trial, load, run

__all__ = ["Axis", "Frame", "Results", "ResultsError", "Trial", "__version__", "find_binary", "load", "run"]

__version__ = VERSION
