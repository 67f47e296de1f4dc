#!/usr/bin/env python3
"""Shows what BFQ decided in recordings: turns, shares, idling, expiries, budgets and raised weights.

    turns.py ARCHIVE.gz [NAME]...    of an archive that pack.py wrote, or of the recordings in it named

For each recording it prints both of Linux's recordings and how far they differ. The figures:

    turns      runs of dispatched requests of one job; the median of their requests and of their ms
    share      percent of the sectors that each job is given, from the first dispatch of the last one
               to the first end of one; of the whole recording, if that is less than 5 % of it, or
               if there are more than five jobs
    gaps       instants at which the device had nothing to do although requests waited, since BFQ
               waited for a job: their number, the sum in ms, and the median in us
    life       ms from the first dispatch of each job to its last completion; that of the last job
    latency    median us from bio to completion of each job
    expiries   how turns of queues ended: no-more-requests, timeout, exhausted, too-idle, preempted
    budget     the median and the largest budget, in sectors
    raised     how often the weight of each job's queue was raised or lowered
"""

import bisect
import collections
import gzip
import pathlib
import statistics
import sys

# The reasons for which BFQ ends the service of a queue, by their number in its messages.
REASONS = ("too-idle", "timeout", "exhausted", "no-more-requests", "preempted")

# A device without work for less time than this was waiting for the processor: in the guest, a
# request takes some 60 us through BFQ, with its messages, and reading 256 KiB ahead 400 us.
GAP_US = 800

# Of more jobs than this, few run at the same time.
MANY = 5


def events_of(lines):
    """Yields the instant, the thread, the letter and the words that follow, of each line."""
    at = 0
    for line in lines:
        us, thread, letter, *words = line.split(" ")
        at += int(us)
        yield at, thread, letter, words


def range_of(words):
    sector, sectors = words[-1].split("+")
    return int(sector), int(sectors)


class Recording:
    """What a recording says of each job."""

    def __init__(self, lines):
        self.dispatches = []  # (instant, thread, sectors)
        self.waits = []  # of requests that waited while the device had nothing to do: (from, us)
        self.ended = collections.defaultdict(list)
        self.latencies = collections.defaultdict(list)
        self.expiries = collections.Counter()
        self.budgets = []
        self.raised = collections.Counter()
        self.said = collections.Counter()
        self.bios = []  # (sector, order, sectors, instant, thread), by sector
        self.waiting = 0
        self.held = {}
        self.idle_since = None
        for at, thread, letter, words in events_of(lines):
            getattr(self, f"on_{letter.lower()}", lambda *_: None)(at, thread, words)

    def on_q(self, at, thread, words):
        sector, sectors = range_of(words)
        bisect.insort(self.bios, (sector, len(self.bios), sectors, at, thread))
        if not self.held and not self.waiting:
            self.idle_since = at
        self.waiting += 1

    def on_m(self, _at, _thread, _words):
        self.waiting -= 1

    on_f = on_m

    def on_x(self, _at, _thread, _words):
        self.waiting += 1

    def bio_at(self, sector):
        """The newest bio that has the sector."""
        found = bisect.bisect(self.bios, (sector, float("inf")))
        for first, _, sectors, at, thread in reversed(self.bios[:found]):
            if first + sectors > sector:
                return at, thread
        return None

    def on_d(self, at, thread, words):
        if not range_of(words)[1]:
            return
        sector, sectors = range_of(words)
        arrived, owner = self.bio_at(sector) or (at, thread)
        if self.idle_since is not None and at - self.idle_since >= GAP_US:
            self.waits.append((self.idle_since, at - self.idle_since))
        self.idle_since = None
        self.held[sector] = (arrived, owner)
        self.dispatches.append((at, owner, sectors))
        self.waiting -= 1

    def on_c(self, at, _thread, words):
        arrived, owner = self.held.pop(range_of(words)[0], (None, None))
        if owner is None:
            return
        self.latencies[owner].append(at - arrived)
        self.ended[owner].append(at)
        if not self.held:
            self.idle_since = at if self.waiting > 0 else None

    def on_b(self, _at, thread, words):
        name, *values = words
        self.said[name] += 1
        if name == "expire":
            self.expiries[REASONS[int(values[0])]] += 1
        elif name == "budget":
            self.budgets.append(int(values[0]))
        elif name == "raise":
            self.raised[thread] += 1

    def order(self):
        """The dispatches in order, each as its job and the number of the job's dispatches before it."""
        before = collections.Counter()
        order = []
        for _, thread, _ in self.dispatches:
            order.append((thread, before[thread]))
            before[thread] += 1
        return order

    def turns(self):
        """The jobs that had a turn, with their requests and the length in us."""
        turns = []
        for at, thread, sectors in self.dispatches:
            if turns and turns[-1][0] == thread:
                turns[-1][1] += 1
                turns[-1][2] += sectors
            else:
                turns.append([thread, 1, sectors, at, 0])
            turns[-1][4] = at - turns[-1][3]
        return turns

    def lives(self):
        """The instants of each job's first dispatch and last completion."""
        lives = {}
        for at, thread, _ in self.dispatches:
            lives.setdefault(thread, (at, self.ended[thread][-1]))
        return dict(sorted(lives.items()))

    def shares(self):
        """Percent of the sectors of each job, while all of them run."""
        lives = self.lives().values()
        begin = max(begin for begin, _ in lives)
        end = min(end for _, end in lives)
        last = max(end for _, end in lives)
        if len(lives) > MANY or end - begin < last // 20:
            begin, end = 0, last
        given = collections.Counter()
        for at, thread, sectors in self.dispatches:
            if begin <= at <= end:
                given[thread] += sectors
        whole = sum(given.values()) or 1
        return {thread: 100 * sectors / whole for thread, sectors in sorted(given.items())}

    def summary(self):
        """The figures as words NAME=VALUE, where a value for each job is JOB:VALUE,JOB:VALUE."""
        turns = self.turns()
        lives = {thread: f"{(end - begin) / 1000:.1f}" for thread, (begin, end) in self.lives().items()}
        gaps = [us for _, us in self.waits]
        each = {
            "share": {thread: f"{share:.1f}" for thread, share in self.shares().items()},
            "life": lives,
            "latency": {t: f"{statistics.median(self.latencies[t]):.0f}" for t in sorted(self.latencies)},
            "expiries": {reason: self.expiries[reason] for reason in REASONS if self.expiries[reason]},
            "raised": dict(sorted(self.raised.items())),
            "said": {name: count for name, count in sorted(self.said.items()) if name[0] in "msw"},
        }
        figures = {
            "requests": len(self.dispatches),
            "turns": len(turns),
            "per-turn": f"{statistics.median(turn[1] for turn in turns):g}",
            "turn-ms": f"{statistics.median(turn[4] for turn in turns) / 1000:.1f}",
            "gaps": len(gaps),
            "gaps-ms": f"{sum(gaps) / 1000:.1f}",
            "gap-us": f"{statistics.median(gaps) if gaps else 0:.0f}",
            "budget": f"{statistics.median(self.budgets) if self.budgets else 0:g}",
            "budget-max": max(self.budgets, default=0),
            "life-last": lives[max((thread for thread in lives if thread != "k"), key=int)],
        }
        for name, values in each.items():
            if values:
                figures[name] = ",".join(f"{key}:{value}" for key, value in values.items())
        return " ".join(f"{name}={value}" for name, value in figures.items())


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    text = gzip.decompress(pathlib.Path(sys.argv[1]).read_bytes()).decode()
    for recording in text.split("= ")[1:]:
        head, first, second, *_ = recording.split("\n", 3)
        name, moved, counts = head.split(" ")
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        print(f"{name}: the second recording displaces {moved}, and has {counts} numbers of events")
        pairs = [dict(word.split("=") for word in line.removeprefix("S ").split(" ")) for line in (first, second)]
        for key in pairs[0] | pairs[1]:
            one, other = (pair.get(key, "-") for pair in pairs)
            print(f"    {key:<10} {one}" + ("" if one == other else f"    second: {other}"))


if __name__ == "__main__":
    main()
