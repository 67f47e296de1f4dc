"""Rows of figures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import pyarrow

Row = dict[str, Any]


class Table(list[Row]):
    """A list of dicts with the same keys, one dict for each job (or group of jobs) and direction of
    a run.

    Columns that every table has:

    - ``job``, ``group``, ``direction``: the section of the job file, its reporting group from 0,
      and ``"sync"``, ``"read"``, ``"write"`` or ``"trim"``. A job that syncs has a row ``"sync"``,
      first of all: its ``ios`` are the syncs, its ``bytes`` 0, and its latencies those of ``fsync``
      and ``fdatasync``. Under ``sync=`` each write is one.
    - ``ios``, ``bytes``, ``iops``, ``bytes_per_s``: what ended, as a sum and per second of the
      job's run time.
    - ``lat_min_ns``, ``lat_mean_ns``, ``lat_p50_ns``, ``lat_p99_ns``, ``lat_p99.9_ns``,
      ``lat_max_ns``: latency from submission to end, in nanoseconds.
    - ``errors``: I/Os and syncs of the job that failed.
    - ``run_iops``, ``run_bytes_per_s``, ``cpu_percent``, ``device_busy_percent``,
      ``ios_per_command``, ``wakeups_per_io``: figures of the whole run, the same in each of its
      rows.
    """

    @property
    def columns(self) -> list[str]:
        """The names of the columns; empty for an empty table."""
        return list(self[0]) if self else []

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the table as a pandas.DataFrame.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas() needs pandas: pip install pandas") from error
        return pandas.DataFrame(list(self), columns=self.columns)

    def to_arrow(self) -> pyarrow.Table:
        """Returns the table as a pyarrow.Table. A column of values of several types becomes one of
        text.

        Raises:
            ImportError: pyarrow is not installed.
        """
        try:
            import pyarrow
        except ImportError as error:
            raise ImportError("to_arrow() needs pyarrow: pip install pyarrow") from error
        columns = {}
        for name in self.columns:
            values = [row[name] for row in self]
            types = {type(value) for value in values if value is not None}
            if len(types) > 1 or types & {list, dict, tuple}:
                values = [None if value is None else as_text(value) for value in values]
            unsigned = types == {int} and min(value for value in values if value is not None) >= 0
            columns[name] = pyarrow.array(values, type=pyarrow.uint64() if unsigned else None)
        return pyarrow.table(columns)


def as_text(value: object) -> str:
    """Returns a value as a profile would write it."""
    return value if isinstance(value, str) else json.dumps(value)
