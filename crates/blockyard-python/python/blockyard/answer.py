"""One question, and its answer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import _native, arguments
from .arguments import Job, SetValue
from .table import Table

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Answer(dict[str, Any]):
    """The answer to `whatif`: a dict with the content of ``blockyard whatif --output-format=json``.

    ``blockyard schema whatif`` prints the schema of this dict. Keys that end in ``_ns`` are
    nanoseconds.

    Attributes:
        rows: A table with a row for each design, job and direction. In addition to the columns of `Table`, it has
            ``design`` and ``ratio``: the IOPS of the whole run relative to those of the first design, None if these are
            0.
    """

    rows: Table

    def to_pandas(self) -> pandas.DataFrame:
        """Returns ``rows`` as a pandas.DataFrame. Raises ImportError if pandas is not installed."""
        return self.rows.to_pandas()

    def to_arrow(self) -> pyarrow.Table:
        """Returns ``rows`` as a pyarrow.Table. Raises ImportError if pyarrow is not installed."""
        return self.rows.to_arrow()


def whatif(
    job: Job,
    device: str | os.PathLike[str],
    designs: Iterable[str | os.PathLike[str]],
    *,
    seed: int = 1,
    seeds: int | None = None,
    readings: int | None = None,
    set: Mapping[str, SetValue] | None = None,
    sweep: Mapping[str, Iterable[SetValue]] | None = None,
    disks: int | None = None,
    faults: str | os.PathLike[str] | None = None,
    filesystem: str | os.PathLike[str] | None = None,
    verify: bool = False,
) -> Answer:
    """Runs a job on a device under each of several designs, and returns their figures and an
    explanation.

    The interpreter lock is released, and all processors are used. In the main thread, Ctrl-C ends
    the runs.

    Args:
        job: A fio job file, or its text. A str is text if it has a line break or begins with ``[``; any other str, and
            every path object, is the path of a file.
        device: The name of a built-in device, or the path of its file.
        designs: Names of built-in designs or paths of their files: a list, not empty. Ratios are relative to the first.
        seed: The seed of all random draws, from 0 to 2**64 - 1.
        seeds: Runs each design with this number of seeds, 1 to 10,000, from ``seed`` on: the answer reports if IOPS and
            p99 differ by more than chance. Each further seed draws other offsets too. None means 8 if
            there are several designs with at most 200,000 I/Os together, else 1.
        readings: Repeats with this number of random draws of the assumed device parameters, 0 to 10,000: the answer
            reports how often the ranking holds. None means 8 if there are several designs with at most 200,000 I/Os
            together, else 0.
        set: Values that replace those of the profiles of the device or the designs: ``{"card.read.access": "900us"}``.
            Keys are paths in the files that ``blockyard show`` prints.
        sweep: Values with which each design runs, of keys as in ``set``: ``{"queue.deadline.fifo-batch": [1, 4, 16]}``.
            Every combination runs, 64 at most. The key ``sweep`` of the answer has the best values, and how to set
            them.
        disks: The number of disks on the device's host, 1 to 1024.
        faults: A file of fault rules.
        filesystem: The file system of the job's files: ``"ext4"``, ``"xfs"``, or the path of a file. None or
            ``"none"``: jobs write to the raw disk, which has no journal. The key ``file_system`` of the answer has its
            figures.
        verify: Whether data is checked. The key ``verified`` of the answer has the result.

    Raises:
        JobError: The job cannot be read, or does not fit the device. It has ``file`` and ``line``.
        ProfileError: A device, design, file system, fault file or value is wrong, or they do not go together.
        SimulationError: A run failed.
        TypeError, ValueError: An argument has a wrong type or is out of range.

    Warns:
        JobWarning: An option of the job has no effect.
    """
    answer, rows, notes = _native.whatif(
        arguments.job_text(job),
        arguments.path("device", device),
        [arguments.path("a design", design) for design in arguments.sequence("designs", designs)],
        arguments.seed(seed),
        arguments.optional_whole("seeds", seeds, arguments.SEEDS),
        arguments.optional_whole("readings", readings, arguments.READINGS),
        arguments.overrides(set),
        arguments.axes(sweep),
        arguments.optional_whole("disks", disks, arguments.DISKS),
        None if faults is None else arguments.path("faults", faults),
        arguments.file_system(filesystem),
        arguments.flag("verify", verify),
    )
    arguments.warn(notes)
    found = Answer(json.loads(answer))
    found.rows = Table(json.loads(rows))
    return found
