#!/usr/bin/env python3
"""Turns the output of blktrace into a recording: one line for each event, in order of time.

    recording.py [--dispatches] PREFIX >RECORDING

With --dispatches, it keeps the number of events of each letter and the dispatches. PREFIX names the
files PREFIX.blktrace.0, .1, … A line has the action's letter, the kind of I/O in blktrace's
abbreviation, and the object of the event:

    Q R 0+8         sector and sectors
    U N 3           requests on the plug
    X R 0+16 / 8    the cut bio, and the sector at which the rest begins
"""

import argparse
import collections
import glob
import struct
import sys

# struct blk_io_trace: magic and version, sequence, time, sector, bytes, action, pid, device, cpu,
# error, length of what follows. From linux/blktrace_api.h, little-endian as on x86.
HEADER = struct.Struct("<IIQQIIIIIHH")
MAGIC = 0x65617407

# The low half of the action is the number of the step; the high half is the kind of I/O.
LETTERS = {1: "Q", 2: "M", 3: "F", 4: "G", 5: "S", 6: "R", 7: "D", 8: "C", 9: "P", 10: "U", 11: "U", 12: "I", 13: "X"}
READ, WRITE, FLUSH, SYNC, NOTIFY, META, DISCARD, FUA = (1 << bit for bit in (16, 17, 18, 19, 26, 28, 29, 31))


def kind_of(action, sectors):
    """The letters that blkparse prints as RWBS."""
    letters = "F" if action & FLUSH else ""
    if action & DISCARD:
        letters += "D"
    elif action & WRITE:
        letters += "W"
    elif sectors:
        letters += "R"
    elif not letters:
        letters = "N"
    for bit, letter in ((FUA, "F"), (SYNC, "S"), (META, "M")):
        letters += letter if action & bit else ""
    return letters


def events_of(path):
    """Yields (time, sequence, line) of every event in one file."""
    with open(path, "rb") as file:
        stream = file.read()
    at = 0
    while at < len(stream):
        header = HEADER.unpack_from(stream, at)
        magic, sequence, time, sector, length, action, _, _, _, _, extra_len = header
        if magic != MAGIC:
            sys.exit(f"{path}: no event at byte {at}")
        extra = stream[at + HEADER.size : at + HEADER.size + extra_len]
        at += HEADER.size + extra_len
        letter = LETTERS.get(action & 0xFFFF)
        if action & NOTIFY or letter is None:
            continue
        sectors = length // 512
        line = f"{letter} {kind_of(action, sectors)}"
        if letter == "U":
            line += f" {int.from_bytes(extra, 'big')}"
        elif letter != "P":
            line += f" {sector}+{sectors}"
        if letter == "X":
            line += f" / {int.from_bytes(extra, 'big')}"
        yield time, sequence, line


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dispatches", action="store_true")
    parser.add_argument("prefix")
    arguments = parser.parse_args()
    paths = sorted(glob.glob(f"{glob.escape(arguments.prefix)}.blktrace.*"))
    if not paths:
        sys.exit(f"no file {arguments.prefix}.blktrace.*")
    events = sorted(event for path in paths for event in events_of(path))
    lines = [line for _, _, line in events]
    if arguments.dispatches:
        counts = collections.Counter(line[0] for line in lines if line[0] != "D")
        dispatches = [line for line in lines if line[0] == "D"]
        lines = [f"{letter} {count}" for letter, count in sorted(counts.items())] + dispatches
    print("\n".join(lines))


main()
