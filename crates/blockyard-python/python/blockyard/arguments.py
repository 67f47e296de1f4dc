"""Checks of arguments: wrong types raise TypeError, wrong values raise ValueError."""

from __future__ import annotations

import json
import operator
import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from . import _native
from .errors import JobWarning

Job = str | os.PathLike[str]
SetValue = str | int | float | bool | list[Any]

SEED_MAX = 2**64 - 1
SEEDS = range(1, 10_001)
READINGS = range(0, 10_001)
DISKS = range(1, 1025)


def is_text(job: object) -> bool:
    """Whether a job is the text of a job file: a str with a line break, or one that begins with ``[``."""
    return isinstance(job, str) and ("\n" in job or job.lstrip().startswith("["))


def path(what: str, value: object) -> str:
    """Returns a name or path as text."""
    given = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(given, str):
        raise TypeError(f"{what} must be a str or a path, not {type(value).__name__}")
    return given


def job_text(job: object) -> tuple[str, bytes]:
    """Returns the name of a job and the bytes of its file. A file is read."""
    if isinstance(job, str) and is_text(job):
        return "<job>", job.encode()
    name = path("job", job)
    return name, bytes(_native.read_job(name))


def whole(what: str, value: object, allowed: range) -> int:
    """Returns a whole number within a range."""
    if isinstance(value, bool):
        raise TypeError(f"{what} must be a whole number, not bool")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{what} must be a whole number, not {type(value).__name__}") from None
    if number not in allowed:
        raise ValueError(f"{what} must be from {allowed.start} to {allowed.stop - 1}, not {number}")
    return number


def optional_whole(what: str, value: object, allowed: range) -> int | None:
    """Returns a whole number within a range, or None."""
    return None if value is None else whole(what, value, allowed)


def seed(value: object) -> int:
    """Returns a seed."""
    return whole("seed", value, range(SEED_MAX + 1))


def file_system(value: object) -> str | None:
    """Returns the name or path of a file system, or None for raw disks."""
    name = None if value is None else path("filesystem", value)
    return None if name == "none" else name


def flag(what: str, value: object) -> bool:
    """Returns True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{what} must be True or False, not {type(value).__name__}")
    return value


def overrides(values: object) -> list[tuple[str, str]]:
    """Returns the values to set in a device, as text."""
    if values is None:
        return []
    if not isinstance(values, Mapping):
        raise TypeError(f"set must be a dict of keys and values, not {type(values).__name__}")
    for key in values:
        if not isinstance(key, str):
            raise TypeError(f"a key of set must be a str, not {type(key).__name__}")
    return [(key, toml(key, value)) for key, value in values.items()]


def axes(values: object) -> list[tuple[str, list[str]]]:
    """Returns the keys of a sweep, and the values of each as text."""
    if values is None:
        return []
    if not isinstance(values, Mapping):
        raise TypeError(f"sweep must be a dict of keys and lists of values, not {type(values).__name__}")
    for key in values:
        if not isinstance(key, str):
            raise TypeError(f"a key of sweep must be a str, not {type(key).__name__}")
    return [(key, [toml(key, value) for value in sequence(f"sweep of {key}", of)]) for key, of in values.items()]


def toml(key: str, value: object) -> str:
    """Returns a value as a profile writes it."""
    if isinstance(value, str):
        return value
    if not isinstance(value, bool | int | float | list | tuple):
        kinds = "a str, a number, a bool or a list of them"
        raise TypeError(f"the value of {key} must be {kinds}, not {type(value).__name__}")
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"the value of {key}: {error}") from None


def sequence(what: str, values: object) -> list[Any]:
    """Returns the values of a list, of which there must be one at least."""
    if isinstance(values, str | bytes | os.PathLike | Mapping) or not isinstance(values, Iterable):
        raise TypeError(f"{what} must be a list, not {type(values).__name__}")
    found = list(values)
    if not found:
        raise ValueError(f"{what} must not be empty")
    return found


def warn(notes: list[str]) -> None:
    """Warns of what the jobs say without effect, once for each note, at the caller of the package."""
    for note in dict.fromkeys(notes):
        warnings.warn(note, JobWarning, stacklevel=3)
