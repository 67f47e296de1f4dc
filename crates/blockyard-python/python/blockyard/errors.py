"""Exceptions and warnings. The messages are those of the command line."""

from __future__ import annotations


class Error(Exception):
    """A job, device, design or run failed.

    Attributes:
        file: The file at fault, as it was named; ``"<job>"`` for a job given as text, None if no file is at fault.
        line: The line in this file, from 1; None if no single line is at fault.
    """

    file: str | None
    line: int | None

    def __init__(self, message: str, file: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.file = file
        self.line = line


class JobError(Error):
    """A job file cannot be read, or does not fit the device."""


class ProfileError(Error):
    """A device, a design, a file of faults or a value to set is wrong, or they do not go together."""


class SimulationError(Error):
    """A run failed: an I/O ended in an error, or nothing more could happen. Also a defect of the simulator itself."""


class JobWarning(UserWarning):
    """A job has an option without effect in a simulation, or reads through the page cache by default."""
