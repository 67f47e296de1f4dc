#!/usr/bin/env python3
"""Packs two recordings of each job on a kernel for the tests.

    pack.py FOLDER OUT.gz

FOLDER has what guest.sh wrote: JOB.SCHEDULER.1 and .2. In OUT.gz, a recording begins with the line

    = JOB.SCHEDULER DISPLACED COUNTS

DISPLACED is how many requests the second recording displaces (see repeated.py). COUNTS is `same` if
both have the same numbers of events of each kind, and `other` if not. The lines of the first
recording follow, as recording.py --timed writes them.

Recordings of jobs that write through the page cache, JOB.PLACE.SCHEDULER.1 and .2, each begin with
the line `= JOB.PLACE.SCHEDULER.1`. The lines of recording.py --writeback follow, and one for each job:

    J 3569 167772160    the milliseconds that it ran, and the bytes that it wrote

The second one is left out if it has the same bios, requests and merges, and no samples of pages.

Recordings of BFQ, JOB.bfq.1 and .2, begin with `= JOB.bfq DISPLACED COUNTS`, where a request is known
by its job and the number of the job's requests before it. Two lines `S ` have the
figures of both (see turns.py), and the lines of the first recording follow, as recording.py --bfq
writes them.
"""

import collections
import gzip
import json
import pathlib
import subprocess
import sys

from repeated import displaced
from turns import Recording

COUNTED = "QXMFDC"


# The jobs whose level of dirty pages is of interest.
LEVELS_OF = ("throttled", "background", "expire")


def read(path, *options):
    """The lines of a recording in the text of tracefs."""
    reader = pathlib.Path(__file__).with_name("recording.py")
    command = [sys.executable, reader, *options, path]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def timed(path):
    return read(path, "--timed", "--ftrace")


def has_same_counts(first, second):
    # TIME THREAD EVENT: the letter of the event.
    letters = [[line.split(" ", 2)[2][0] for line in recording] for recording in (first, second)]
    counts = [collections.Counter(letter for letter in half if letter in COUNTED) for half in letters]
    return "same" if counts[0] == counts[1] else "other"


def dispatched(lines):
    events = [line.split(" ", 2)[2] for line in lines]
    return [event for event in events if event[0] == "D" and "+" in event]


def bfq(path):
    """The lines of both recordings of a job under BFQ."""
    both = [read(one, "--bfq") for one in (path, path.with_suffix(".2"))]
    first, second = map(Recording, both)
    moved = displaced(first.order(), second.order())
    figures = [f"S {recording.summary()}" for recording in (first, second)]
    return [f"= {path.stem} {moved} {has_same_counts(*both)}", *figures, *both[0]]


def ends_of(path):
    """What fio says of each job, or nothing if the kernel does not support one of them."""
    output = path.with_name(f"{path.name}.json").read_text()
    # Notes come before the JSON.
    jobs = json.loads(output[output.index("{") :])["jobs"]
    if any(job["error"] for job in jobs):
        return []
    return [f"J {job['write']['runtime']} {job['write']['io_bytes']}" for job in jobs]


def writeback(path):
    """The lines of both recordings of a job that writes through the page cache."""
    is_paced = path.name.startswith(LEVELS_OF)
    paths = [path, path.with_suffix(".2")]
    if not ends_of(path):
        return []
    both = [read(one, "--writeback", *["--levels"] * is_paced) + ends_of(one) for one in paths]
    decided = [[line for line in lines if line[0] in "QDM"] for lines in both]
    if decided[0] == decided[1] and not is_paced:
        both.pop()
    return [line for one, lines in zip(paths, both, strict=False) for line in (f"= {one.name}", *lines)]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    lines = []
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.1")):
        if path.with_name(f"{path.name}.json").exists():
            lines += writeback(path)
            continue
        if path.stem.endswith(".bfq"):
            lines += bfq(path)
            continue
        first, second = timed(path), timed(path.with_suffix(".2"))
        moved = displaced(dispatched(first), dispatched(second))
        lines += [f"= {path.stem} {moved} {has_same_counts(first, second)}", *first]
    text = "".join(f"{line}\n" for line in lines)
    # Without the time, equal recordings make equal files.
    pathlib.Path(sys.argv[2]).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


main()
