"""What a block-layer design would do on a device that you need not have.

`whatif` runs a fio job in virtual time on a modelled device under several queueing designs of
Linux's block layer, and returns the answer of ``blockyard whatif --output-format=json``. `sweep`
runs a grid of jobs, devices, designs, seeds and values of devices, on all processors or on a Dask
client, and returns one table. The same seed gives the same answer to the last digit. Times are
integers in nanoseconds unless they are given as text with a unit ("900us").
"""

from ._native import designs, devices
from .answer import Answer, whatif
from .errors import Error, JobError, JobWarning, ProfileError, SimulationError
from .sweeping import sweep
from .table import Table

__all__ = [
    "Answer",
    "Error",
    "JobError",
    "JobWarning",
    "ProfileError",
    "SimulationError",
    "Table",
    "designs",
    "devices",
    "sweep",
    "whatif",
]
