#!/usr/bin/env python3
"""Packs two recordings of each job on a kernel for the tests.

    pack.py FOLDER OUT.gz

FOLDER has what guest.sh wrote: JOB.SCHEDULER.1 and .2. In OUT.gz, a recording begins with the line

    = JOB.SCHEDULER DISPLACED COUNTS

DISPLACED is how many requests the second recording displaces (see repeated.py). COUNTS is `same` if
both have the same numbers of events of each kind, and `other` if not. The lines of the first
recording follow, as recording.py --timed writes them.
"""

import collections
import gzip
import pathlib
import subprocess
import sys

from repeated import displaced

COUNTED = "QXMFDC"


def timed(path):
    """The lines of a recording in the text of tracefs."""
    reader = pathlib.Path(__file__).with_name("recording.py")
    command = [sys.executable, reader, "--timed", "--ftrace", path]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    lines = []
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.1")):
        first, second = timed(path), timed(path.with_suffix(".2"))
        # TIME THREAD EVENT: the events only.
        events = [[line.split(" ", 2)[2] for line in recording] for recording in (first, second)]
        dispatched = [[event for event in half if event[0] == "D" and "+" in event] for half in events]
        counts = [collections.Counter(event[0] for event in half if event[0] in COUNTED) for half in events]
        same = "same" if counts[0] == counts[1] else "other"
        lines += [f"= {path.stem} {displaced(*dispatched)} {same}", *first]
    text = "".join(f"{line}\n" for line in lines)
    # Without the time, equal recordings make equal files.
    pathlib.Path(sys.argv[2]).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


main()
