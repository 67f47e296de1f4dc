#!/usr/bin/env python3
"""Turns what Linux traced of a disk into a recording: one line for each event, in order of time.

    recording.py [--dispatches | --timed | --trace] PREFIX >RECORDING
    recording.py [--dispatches | --timed | --trace] --ftrace FILE >RECORDING
    recording.py --writeback [--levels] FILE >RECORDING
    recording.py --bfq FILE >RECORDING

With --dispatches, it keeps the number of events of each letter and the dispatches. With --timed, the
line of an event begins with the microseconds since the event before it and with its thread: 0 for
none, a number of fio's in order of appearance, `k` for a worker. With --trace, it writes the output of
blkparse, which can be replayed. PREFIX names the files PREFIX.blktrace.0, .1, …
of blktrace. FILE is `trace` of tracefs with the events of one disk in the group `block`: the kernels
from 7.2 on record requests with FUA there, but not for blktrace 1.2. A line has the action's letter,
the kind of I/O in blktrace's abbreviation, and the object of the event:

    Q R 0+8         sector and sectors
    U N 3           requests on the plug
    X R 0+16 / 8    the cut bio, and the sector at which the rest begins

With --writeback, it keeps what a page cache decides: the bios, then the requests, in order of time,
and the number of merges. Neighbours of one kind and size share a line. With --levels, samples of the
pages that are dirty or under writeback follow, at most one for each 20 ms:

    Q WS 0+8 32     32 bios of 8 sectors, at sectors 0, 8, 16 and so on
    M 31            merges
    L 20000 4711    pages, so many microseconds after the first bio

With --bfq, lines are those of --timed, but without plugs, insertions and bios that join a request at
its back. Threads are numbered as their jobs are in the file, each of which begins in a GiB of its own.
What BFQ itself says is among them, as `B`, where the thread is that of the queue (`a` for a queue of
writes that nobody waits for, `s` for a shared one):

    B serve 10922          begins to serve the queue, with a budget in sectors
    B expire 1 0 31 1      ends it: the reason (turns.py has their names), whether it was slow, requests
                           that the driver has not returned, whether its process thinks for a short time
    B budget 16384         the queue's next budget
    B max 8192             the largest budget from here on, which follows from the peak rate
    B raise 8 10500 30 40  the queue's weight, 40, is raised: for 8 ms so far, at most 10500 ms, by the
                           factor 30; kept where another period or factor begins
    B merge, B merges, B split, B waker, B waker?
"""

import argparse
import collections
import glob
import re
import struct
import sys

# struct blk_io_trace: magic and version, sequence, time, sector, bytes, action, pid, device, cpu,
# error, length of what follows. From linux/blktrace_api.h, little-endian as on x86.
HEADER = struct.Struct("<IIQQIIIIIHH")
MAGIC = 0x65617407

# The low half of the action is the number of the step; the high half is the kind of I/O.
LETTERS = {1: "Q", 2: "M", 3: "F", 4: "G", 5: "S", 6: "R", 7: "D", 8: "C", 9: "P", 10: "U", 11: "U", 12: "I", 13: "X"}
READ, WRITE, FLUSH, SYNC, NOTIFY, META, DISCARD, FUA = (1 << bit for bit in (16, 17, 18, 19, 26, 28, 29, 31))

# The tracepoints of the group `block`, by blktrace's letters.
TRACEPOINTS = {
    "bio_queue": "Q",
    "bio_backmerge": "M",
    "bio_frontmerge": "F",
    "rq_merge": "M",
    "getrq": "G",
    "split": "X",
    "rq_insert": "I",
    "rq_issue": "D",
    "rq_requeue": "R",
    "rq_complete": "C",
    "plug": "P",
    "unplug": "U",
}
LINE = re.compile(
    r"^ *(?P<comm>.+)-(?P<pid>\d+) +\[(?P<cpu>\d+)\] +\S+ +"
    r"(?P<s>\d+)\.(?P<us>\d{6}): block_(?P<name>\w+): (?P<rest>.*)$"
)
REQUEST = re.compile(r"^\d+,\d+ (?P<kind>[A-Z]+) (?:\d+ )?(?:\(.*?\) )?(?P<sector>\d+) (?P<sep>[+/]) (?P<count>\d+)")

# What BFQ says, by the tracer `blk`, and what of it a recording keeps.
SAID = re.compile(
    r"^ *(?P<comm>.+)-(?P<pid>\d+) +\[(?P<cpu>\d+)\] +\S+ +"
    r"(?P<s>\d+)\.(?P<us>\d{6}): +\d+,\d+ +\d+,\d+ +m +N bfq(?P<queue>\d+[SA]|SHARED-[SA])? (?P<text>.*)$"
)
KEPT = (
    (re.compile(r"set_in_service_queue, cur-budget = (\d+)"), "serve {}"),
    (re.compile(r"expire \((\d+), slow (\d+), num_disp (\d+), short_ttime (\d+)\)"), "expire {} {} {} {}"),
    (re.compile(r"head sect: \d+, new budget (\d+)"), "budget {}"),
    (re.compile(r"new max_budget = (\d+)"), "max {}"),
    (re.compile(r"raising period dur (\d+)/(\d+) msec, old coeff (\d+), w \d+\((\d+)\)"), "raise {} {} {} {}"),
    (re.compile(r"scheduling merge with queue (\d+)"), "merge"),
    (re.compile(r"merging with queue \d+"), "merges"),
    (re.compile(r"splitting queue"), "split"),
    (re.compile(r"set waker .*"), "waker"),
    (re.compile(r"set tentative waker .*"), "waker?"),
)

# The sectors of a GiB.
GIB = 2 << 20

# How many pages of the machine are dirty or under writeback, from the group `writeback`.
LEVEL = re.compile(r" (?P<s>\d+)\.(?P<us>\d{6}): global_dirty_state: dirty=(?P<dirty>\d+) writeback=(?P<moving>\d+)")

# The time from one sample of the dirty pages to the next one that is kept.
SAMPLE_US = 20_000

Event = collections.namedtuple("Event", "ns order cpu pid letter kind object comm")


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


def events_of_blktrace(path):
    """Yields every event in one file of blktrace."""
    with open(path, "rb") as file:
        stream = file.read()
    at = 0
    while at < len(stream):
        header = HEADER.unpack_from(stream, at)
        magic, sequence, time, sector, length, action, pid, _, cpu, _, extra_len = header
        if magic != MAGIC:
            sys.exit(f"{path}: no event at byte {at}")
        extra = stream[at + HEADER.size : at + HEADER.size + extra_len]
        at += HEADER.size + extra_len
        letter = LETTERS.get(action & 0xFFFF)
        if action & NOTIFY or letter is None:
            continue
        sectors = length // 512
        about = ""
        if letter == "U":
            about = f"{int.from_bytes(extra, 'big')}"
        elif letter != "P":
            about = f"{sector}+{sectors}"
        if letter == "X":
            about += f" / {int.from_bytes(extra, 'big')}"
        yield Event(time, sequence, cpu, pid, letter, kind_of(action, sectors), about, "-")


def kind_of_tracepoint(rwbs, sectors):
    """The letters of a tracepoint as blktrace has them: a flush of the driver is `FF` there."""
    if rwbs == "FF" or (rwbs == "F" and not sectors):
        return "F"
    return rwbs


def events_of_ftrace(path, has_others=False):
    """Yields every event in the text of tracefs, which may have others than those of a disk."""
    with open(path, encoding="ascii", errors="replace") as file:
        for order, line in enumerate(file):
            found = LINE.match(line)
            letter = TRACEPOINTS.get(found["name"]) if found else None
            if letter is None:
                if not has_others and not line.startswith("#") and line.strip():
                    sys.exit(f"{path}:{order + 1}: no event: {line}")
                continue
            kind, about = "N", ""
            if letter == "U":
                about = found["rest"].rsplit(" ", 1)[1]
            elif letter != "P":
                request = REQUEST.match(found["rest"])
                if not request:
                    sys.exit(f"{path}:{order + 1}: no request: {line}")
                sector, count = int(request["sector"]), int(request["count"])
                if not count:
                    sector = 0  # of a flush; 2^64 - 1 where it ends
                about = f"{sector}+{count}"
                if letter == "X":
                    about = f"{sector}+{count - sector} / {count}"
                kind = kind_of_tracepoint(request["kind"], count if letter != "X" else 1)
            ns = (int(found["s"]) * 1_000_000 + int(found["us"])) * 1000
            yield Event(ns, order, int(found["cpu"]), int(found["pid"]), letter, kind, about, found["comm"].strip())


def line_of(event):
    return f"{event.letter} {event.kind} {event.object}".rstrip()


def timed_of(events):
    """The events with times and threads, from the first bio on. `G` follows from the others."""
    threads = {0: "0"}
    before = None
    for event in events:
        if before is None and event.letter != "Q":
            continue
        if event.letter == "G":
            continue
        if event.pid not in threads:
            is_worker = event.comm.startswith("kworker")
            of_fio = sum(name.isdigit() for name in threads.values())
            threads[event.pid] = "k" if is_worker else f"{of_fio}"
        us = (event.ns - (event.ns if before is None else before)) // 1000
        before = event.ns
        yield f"{us} {threads[event.pid]} {line_of(event)}"


def said_of(path):
    """Yields what BFQ says, of what a recording keeps."""
    raised = {}
    with open(path, encoding="ascii", errors="replace") as file:
        for order, line in enumerate(file):
            said = SAID.match(line)
            for pattern, form in KEPT if said else ():
                if found := pattern.fullmatch(said["text"].strip()):
                    ns = (int(said["s"]) * 1_000_000 + int(said["us"])) * 1000
                    queue = said["queue"] or "0S"
                    pid = -1 if queue.startswith("SHARED") else int(queue[:-1]) if queue.endswith("S") else -2
                    if form.startswith("raise"):
                        ms, period = int(found[1]), found.groups()[1:]
                        began, last = raised.get(pid, (0, None))
                        raised[pid] = (ms, period)
                        if period == last and ms >= began:
                            break
                    yield Event(ns, order, int(said["cpu"]), pid, "B", "", form.format(*found.groups()), "")
                    break


def jobs_of(events):
    """The numbers of fio's processes: 1 for the one that begins in the first GiB of the disk, 2 for that
    in the second one. If two begin in the same, they are numbered in the order of their pids."""
    begins = {}
    for event in events:
        if event.letter == "Q" and event.comm == "fio":
            begins.setdefault(event.pid, int(event.object.split("+")[0]) // GIB)
    if len(set(begins.values())) < len(begins):
        begins = {pid: place for place, pid in enumerate(sorted(begins))}
    return {pid: f"{place + 1}" for pid, place in begins.items()}


def joined(bio, merge):
    return bio.letter == "Q" and merge.letter == "M" and bio.object == merge.object


def bfq_of(path):
    """The events of a recording with --bfq."""
    events = [event for event in events_of_ftrace(path, has_others=True) if event.letter in "QXMFDRC"]
    threads = jobs_of(events) | {0: "0", -1: "s", -2: "a"}
    # A bio that joins a request at once says no more than the longer request.
    joins = [at for at, (bio, merge) in enumerate(zip(events, events[1:], strict=False)) if joined(bio, merge)]
    for at in reversed(joins):
        del events[at : at + 2]
    events = sorted([*events, *said_of(path)], key=lambda event: event.order)
    while events and events[0].letter != "Q":
        events.pop(0)
    before = events[0].ns if events else 0
    for event in events:
        us = (event.ns - before) // 1000
        before = event.ns
        # What ends in an interrupt has no thread of its own.
        thread = "0" if event.letter == "C" else threads.get(event.pid, "k")
        yield " ".join(f"{us} {thread} {event.letter} {event.kind} {event.object}".split())


def blkparse_of(events):
    """The events as blkparse prints them, from the first bio on."""
    begin = next((event.ns for event in events if event.letter == "Q"), 0)
    for number, event in enumerate(events, 1):
        if event.ns < begin:
            continue
        at = event.ns - begin
        about = re.sub(r"^(\d+)\+(\d+)", r"\1 + \2", event.object) + " " if event.object else ""
        name = f"[{event.comm}]"
        about = f"{name} {event.object}" if event.letter in "PU" else about + name
        at = f"{at // 1_000_000_000}.{at % 1_000_000_000:09}"
        yield f"259,0 {event.cpu} {number} {at} {event.pid} {event.letter} {event.kind} {about.strip()}"


def folded(lines):
    """Lines LETTER KIND SECTOR+SECTORS: neighbours of one kind and size as one line with their number."""
    runs = []
    for line in lines:
        head, place = line.rsplit(" ", 1)
        sector, sectors = map(int, place.split("+"))
        if runs:
            last, begin, size, count = runs[-1]
            if (last, size, begin + count * size) == (head, sectors, sector):
                runs[-1] = (last, begin, size, count + 1)
                continue
        runs.append((head, sector, sectors, 1))
    return [f"{head} {begin}+{size} {count}" for head, begin, size, count in runs]


def levels_of(path, begin_ns):
    """Yields the samples of the dirty pages, from `begin_ns` on."""
    due_us = 0
    with open(path, encoding="ascii", errors="replace") as file:
        for found in filter(None, map(LEVEL.search, file)):
            us = int(found["s"]) * 1_000_000 + int(found["us"]) - begin_ns // 1000
            if us >= due_us:
                due_us = us - us % SAMPLE_US + SAMPLE_US
                yield f"L {us} {int(found['dirty']) + int(found['moving'])}"


def writeback_of(path, samples):
    """The bios, requests and merges of a trace, and the levels of dirty pages if it has `samples`."""
    events = list(events_of_ftrace(path, has_others=True))
    for letter in "QD":
        yield from folded(line_of(event) for event in events if event.letter == letter)
    yield f"M {sum(event.letter in 'MF' for event in events)}"
    if samples:
        yield from levels_of(path, next(event.ns for event in events if event.letter == "Q"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dispatches", action="store_true")
    parser.add_argument("--timed", action="store_true")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--writeback", action="store_true")
    parser.add_argument("--levels", action="store_true")
    parser.add_argument("--bfq", action="store_true")
    parser.add_argument("--ftrace", action="store_true")
    parser.add_argument("prefix")
    arguments = parser.parse_args()
    if arguments.writeback:
        print("\n".join(writeback_of(arguments.prefix, arguments.levels)))
        return
    if arguments.bfq:
        print("\n".join(bfq_of(arguments.prefix)))
        return
    if arguments.ftrace:
        events = list(events_of_ftrace(arguments.prefix))
    else:
        paths = sorted(glob.glob(f"{glob.escape(arguments.prefix)}.blktrace.*"))
        if not paths:
            sys.exit(f"no file {arguments.prefix}.blktrace.*")
        events = sorted(event for path in paths for event in events_of_blktrace(path))
    if arguments.timed:
        print("\n".join(timed_of(events)))
        return
    if arguments.trace:
        print("\n".join(blkparse_of(events)))
        return
    lines = [line_of(event) for event in events]
    if arguments.dispatches:
        counts = collections.Counter(line[0] for line in lines if line[0] != "D")
        dispatches = [line for line in lines if line[0] == "D"]
        lines = [f"{letter} {count}" for letter, count in sorted(counts.items())] + dispatches
    print("\n".join(lines))


main()
