#!/usr/bin/env python3
"""Compares two recordings of each job: how well Linux repeats itself.

    repeated.py FOLDER SECOND >>crates/blockyard-sim/tests/oracle/repeated

Prints a line for each recording of FOLDER: its name, how many of its requests the recording in
SECOND displaces, and how many are dispatched in the same order before the first difference. A
request is displaced if it is not part of the longest sequence of requests that both have.
"""

import bisect
import collections
import pathlib
import sys


def dispatched(path):
    """The requests of a recording in the order of dispatch."""
    lines = path.read_text().splitlines()
    return [line for line in lines if line[0] == "D" and "+" in line]


def displaced(first, second):
    places = collections.defaultdict(collections.deque)
    for place, request in enumerate(first):
        places[request].append(place)
    ends = []  # the place at which the best rising sequence of each length ends
    for request in second:
        if places[request]:
            place = places[request].popleft()
            at = bisect.bisect_left(ends, place)
            ends[at : at + 1] = [place]
    return max(len(first), len(second)) - len(ends)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, other = map(pathlib.Path, sys.argv[1:])
    for path in sorted(folder.iterdir()):
        if path.suffix == ".fio":
            continue
        first, second = dispatched(path), dispatched(other / path.name)
        pairs = enumerate(zip(first, second, strict=False))
        alike = next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))
        print(path.name, displaced(first, second), alike)


if __name__ == "__main__":
    main()
