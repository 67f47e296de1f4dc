"""Sweeps: many runs, and one table."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from . import _native, arguments
from . import errors as exceptions
from .table import Row, Table

AXES = ("job", "device", "design", "seed", "set")
# The points of one call on this machine, and of one chunk on a client: memory is bounded by them.
SLICE_POINTS = 1024
CHUNK_POINTS_MAX = 256
# Chunks for each thread of a client: no thread waits long for the last one, and their scheduling
# (some milliseconds of CPU time each) stays small.
CHUNKS_PER_THREAD = 16
# How often Dask runs a chunk again that failed.
RETRIES = 3


class Point(NamedTuple):
    """A run: the texts of its job, device and design, its seed, and the columns that identify its rows."""

    job: tuple[str, bytes]
    device: tuple[str, str]
    set: tuple[tuple[str, str], ...]
    design: tuple[str, str]
    seed: int
    labels: Row


def sweep(
    grid: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    client: Any = None,
    *,
    errors: str = "raise",
    threads: int | None = None,
    chunk: int | None = None,
) -> Table:
    """Runs every point of a grid and returns one table.

    A point has a ``job``, a ``device`` and a ``design``, as `whatif` takes them, a ``seed`` (1 if
    absent) and values to ``set`` in the device or the design (none if absent). Files are read here, before the
    first run; only the files that a job includes are read where it runs.

    The interpreter lock is released. Without a client, the runs take all processors, and Ctrl-C
    ends them. Each point keeps only its rows: 10,000 points take some megabytes.

    Args:
        grid: A dict of lists, of which every combination is a point, the last key varying fastest; or a list of points,
            each a dict. The keys are ``job``, ``device``, ``design``, ``seed`` and ``set``. A key may have a single
            value in place of a list. In a dict of lists, ``set`` is a dict of lists, a grid of its own, or a list of
            dicts: ``{"card.read.access": ["100us", "900us"]}``.
        client: A ``distributed.Client``. Its workers need this package, in the same version. Chunks of points that are
            lost with a worker, or fail, run again. None: threads of this process.
        errors: ``"raise"``: the first point, in the order of the grid, that cannot run or fails raises its exception.
            ``"rows"``: it has one row, with the message in the column ``error``, and no figures. A job, device, design
            or value that cannot be read always raises, before the first run.
        threads: The number of threads without a client, 1 to 1024. None: one for each processor.
        chunk: The points of a chunk on a client, 1 to 100,000. None: 16 chunks for each thread of the client, of at
            most 256 points.

    Returns:
        A table with a row for each point, job (or group) and direction. In addition to the columns of `Table`, it has
        ``point`` (from 0), ``job_file``, ``device``, ``design``, ``seed``, a column for each key that is set anywhere,
        and, with ``errors="rows"``, ``error``.

    Raises:
        JobError, ProfileError, SimulationError: As `whatif`.
        TypeError, ValueError: An argument has a wrong type or value, or the grid is empty.

    Warns:
        JobWarning: An option of a job has no effect.
    """
    if errors not in ("raise", "rows"):
        raise ValueError(f'errors must be "raise" or "rows", not {errors!r}')
    if client is not None and not callable(getattr(client, "submit", None)):
        raise TypeError(f"client must be a distributed.Client, not {type(client).__name__}")
    given = arguments.optional_whole("threads", threads, range(1, 1025))
    size = arguments.optional_whole("chunk", chunk, range(1, 100_001))
    all_points = list(points(grid))
    jobs, devices, designs, _ = tables(all_points)
    arguments.warn(_native.check(jobs, devices, designs))
    raises = errors == "raise"
    if client is None:
        ended = in_threads(all_points, given or processors(), raises)
    else:
        ended = on_client(client, all_points, size, raises)
    with contextlib.closing(ended):
        return table(all_points, ended, raises)


def processors() -> int:
    """Returns the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def points(grid: object) -> Iterator[Point]:
    """Returns the points of a grid. A file that several points name is read once."""
    given = combinations(grid) if isinstance(grid, Mapping) else arguments.sequence("grid", grid)
    read: dict[tuple[str, str], Any] = {}

    def text(kind: str, value: object) -> Any:
        name = arguments.path(kind, value)
        if (kind, name) not in read:
            read[kind, name] = TEXTS[kind](name)
        return read[kind, name]

    for number, point in enumerate(given):
        if not isinstance(point, Mapping):
            raise TypeError(f"a point must be a dict, not {type(point).__name__}")
        check_keys(point)
        for key in ("job", "device", "design"):
            if key not in point:
                raise ValueError(f"point {number} has no {key}")
        seed = arguments.seed(point.get("seed", 1))
        job, device, design = (text(key, point[key]) for key in ("job", "device", "design"))
        chosen = point.get("set") or {}
        values = tuple(arguments.overrides(chosen))
        labels = {"point": number, "job_file": job[0], "device": device[0], "design": design[0]}
        yield Point(job, device, values, design, seed, labels | {"seed": seed} | dict(chosen))


TEXTS: dict[str, Callable[[str], tuple[str, Any]]] = {
    "job": arguments.job_text,
    "device": lambda name: (name, _native.device_text(name)),
    "design": lambda name: (name, _native.design_text(name)),
}


def combinations(grid: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Returns the points of a dict of lists."""
    check_keys(grid)
    axes = {key: axis(key, values) for key, values in grid.items()}
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def axis(key: str, values: object) -> list[Any]:
    """Returns the values of an axis."""
    if key == "set" and isinstance(values, Mapping):
        lists = [axis(name, of) for name, of in values.items()]
        return [dict(zip(values, of, strict=True)) for of in itertools.product(*lists)]
    if isinstance(values, str | os.PathLike) or not isinstance(values, Iterable):
        return [values]
    return arguments.sequence(key, values)


def check_keys(of: Mapping[str, Any]) -> None:
    """Raises ValueError for a key that no point has."""
    for key in of:
        if key not in AXES:
            raise ValueError(f"unknown key {key!r} (one of {', '.join(AXES)})")


def tables(
    of: list[Point],
) -> tuple[list[Any], list[Any], list[Any], list[tuple[int, int, int, int]]]:
    """Returns the jobs, devices and designs of points without repetition, and the points as indices into them."""
    jobs: dict[Any, int] = {}
    devices: dict[Any, int] = {}
    designs: dict[Any, int] = {}
    indices = [
        (
            jobs.setdefault(point.job, len(jobs)),
            devices.setdefault((*point.device, point.set), len(devices)),
            designs.setdefault((*point.design, point.set), len(designs)),
            point.seed,
        )
        for point in of
    ]
    # The native module takes from the values of a point those of its device and of its design.
    of_devices, of_designs = (
        [(name, text, list(values)) for name, text, values in entries] for entries in (devices, designs)
    )
    return list(jobs), of_devices, of_designs, indices


def run(of: list[Point], threads: int, raises: bool) -> list[Any]:
    """Runs points, and returns for each its rows, its refusal, or None if it was left out."""
    found: list[Any] = json.loads(_native.sweep(*tables(of), threads, raises))
    return found


def run_chunk(of: list[Point], raises: bool) -> list[Any]:
    """Runs a chunk in one thread of a worker."""
    return run(of, 1, raises)


def parts(of: list[Point], size: int) -> Iterator[list[Point]]:
    """Cuts points into parts of a size."""
    for start in range(0, len(of), size):
        yield of[start : start + size]


def in_threads(of: list[Point], threads: int, raises: bool) -> Generator[Any]:
    """Runs points in threads of this process, a slice at a time."""
    for part in parts(of, SLICE_POINTS):
        yield from run(part, threads, raises)


def on_client(client: Any, of: list[Point], size: int | None, raises: bool) -> Generator[Any]:
    """Runs points on a Dask client. Chunks that have not ended are cancelled when the sweep ends early."""
    if size is None:
        threads = max(1, sum(client.nthreads().values()))
        size = min(CHUNK_POINTS_MAX, -(-len(of) // (threads * CHUNKS_PER_THREAD)))
    bare = [point._replace(labels={}) for point in of]
    futures = [client.submit(run_chunk, part, raises, retries=RETRIES, pure=False) for part in parts(bare, size)]
    try:
        while futures:
            yield from futures[0].result()
            futures.pop(0).release()
    finally:
        if futures:
            client.cancel(futures)


def table(of: list[Point], ended: Iterable[Any], raises: bool) -> Table:
    """Returns the rows of all points, with their labels in front. Raises the first refusal if that is asked for."""
    keys = list(dict.fromkeys(key for point in of for key in point.labels))
    rows = Table()
    for point, end in zip(of, ended, strict=False):
        labels = dict.fromkeys(keys) | point.labels
        if "refused" in end:
            if raises:
                raise exception(point, end["refused"])
            rows.append(labels | {"error": end["refused"]["message"]})
        else:
            error = {} if raises else {"error": None}
            rows.extend(labels | error | row for row in end["rows"])
    columns = dict.fromkeys(column for row in rows for column in row)
    return rows if raises else Table(columns | row for row in rows)


def exception(point: Point, refusal: Mapping[str, Any]) -> exceptions.Error:
    """Returns the exception of a point."""
    kind = getattr(exceptions, refusal["class"])
    error: exceptions.Error = kind(refusal["message"], refusal["file"], refusal["line"])
    if hasattr(error, "add_note"):
        error.add_note(f"at {point.labels}")
    return error
