#!/usr/bin/env python3
"""Compares the answers of two builds of `blockyard`, number by number.

    ci/compare-answers.py record PROGRAM FILE [PATTERN]   keeps the answers of PROGRAM in FILE (gzip)
    ci/compare-answers.py FILE PROGRAM [PATTERN]          compares the answers of PROGRAM with FILE
    ci/compare-answers.py hash PROGRAM FILE [PATTERN]     writes a hash of each answer of PROGRAM to FILE

Every job in examples/ runs on every built-in device under every built-in design, and every
published experiment is reproduced. Where the program before answers, the program after must answer
too, and every number of the old JSON must stand in the new one: at the same place in `run` and
`reproduce`, anywhere under the same design in `whatif`, whose layout may change. Where the old
program refuses, the new one must refuse with the same exit code. PATTERN, a regular expression,
selects cases by their name.

`ci/answers.txt` has the hashes of every `run` at the last commit that changed one. A change of
hashes belongs to a commit that says why.

Exit code 0: no number differs. 1: some differ; up to five lines say where. 2: bad usage.
"""

import collections
import concurrent.futures
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
# On memory the long SCSI and MMC jobs take minutes and show nothing that these do not.
JOBS_ON_PMEM = r"pmem|fsync|dd|find"


def jobs():
    for folder in ("examples", "examples/mmc"):
        for name in sorted(os.listdir(os.path.join(ROOT, folder))):
            if name.endswith(".fio"):
                yield f"{folder}/{name}"


def names(program, kind):
    """The built-in devices or designs: the first words of the table that `list` heads with `kind`."""
    text = subprocess.run([program, "list"], capture_output=True, text=True, check=True).stdout
    tables = (table.splitlines() for table in text.split("\n\n"))
    rows = [row for head, *rows in tables if head.startswith(f"{kind} ") for row in rows]
    return [row.split()[0] for row in rows if not row.startswith(" ")]


def leaves(value, path=""):
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves(below, f"{path}/{key}")
    elif isinstance(value, list):
        for at, below in enumerate(value):
            yield from leaves(below, f"{path}/{at}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def answer(program, arguments):
    done = subprocess.run([program, *arguments, "--output-format", "json"], capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout) if done.returncode == 0 else None


def same_places(before, after):
    found = dict(leaves(after))
    return [
        f"{path}: {number} is now {found.get(path, 'missing')}"
        for path, number in leaves(before)
        if found.get(path) != number
    ]


def same_numbers(before, after):
    """Every number of each design, wherever it stands."""
    lost = []
    for old, new in zip(before["designs"], after["designs"], strict=True):
        found = collections.Counter(number for _, number in leaves(new))
        for path, number in leaves(old):
            if number != 0 and found[number] == 0:
                lost.append(f"{old['name']}{path}: {number} is not there any more")
    return lost


def cases(program):
    devices, designs = names(program, "device"), names(program, "design")
    for device in devices:
        pmem = device.startswith("pmem")
        for job in jobs():
            if pmem and not re.search(JOBS_ON_PMEM, job):
                continue
            for design in designs:
                yield f"run {job} --device {device} --design {design}"
            pair = "pmem-raw,btt" if pmem else "mq-none,mq-deadline"
            yield f"whatif {job} --device {device} --design {pair}"
    listed = subprocess.run([program, "reproduce"], capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines()[1:]:
        yield f"reproduce {line.split()[0]}"


def answers(program, selected):
    """The exit code and the JSON of each case, in their order."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(lambda case: answer(program, case.split()), selected)


def differences(case, before, after):
    (old_code, old), (new_code, new) = before, after
    if old_code != new_code:
        return [f"exit code {old_code} is now {new_code}"]
    if old is None:
        return []
    return (same_numbers if case.startswith("whatif") else same_places)(old, new)


def record(program, file, pattern):
    selected = [case for case in cases(program) if pattern.search(case)]
    with gzip.open(file, "wt") as out:
        for case, found in zip(selected, answers(program, selected), strict=True):
            print(json.dumps([case, found]), file=out)
    print(f"{len(selected)} answers kept")
    return 0


def hashes(program, file, pattern):
    """A line for each run that is not refused. Keys come in order, so that their order is no difference."""
    selected = [case for case in cases(program) if case.startswith("run") and pattern.search(case)]
    count = 0
    with open(file, "w") as out:
        for case, (code, found) in zip(selected, answers(program, selected), strict=True):
            if code == 0:
                text = json.dumps(found, sort_keys=True).encode()
                print(hashlib.sha256(text).hexdigest()[:12], case, file=out)
                count += 1
    print(f"{count} of {len(selected)} runs hashed")
    return 0


def compare(file, program, pattern):
    with gzip.open(file, "rt") as lines:
        kept = [(case, found) for case, found in map(json.loads, lines) if pattern.search(case)]
    wrong = 0
    found = answers(program, [case for case, _ in kept])
    for (case, before), after in zip(kept, found, strict=True):
        lines = differences(case, before, after)
        wrong += bool(lines)
        for line in lines[:5]:
            print(f"{case}: {line}", flush=True)
    print(f"{len(kept)} answers compared, {wrong} differ")
    return 1 if wrong or not kept else 0


def main(arguments):
    action = compare
    if arguments[:1] in (["record"], ["hash"]):
        action = record if arguments[0] == "record" else hashes
        arguments = arguments[1:]
    if len(arguments) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    first, second = map(os.path.abspath, arguments[:2])
    os.chdir(ROOT)
    return action(first, second, re.compile(arguments[2] if len(arguments) == 3 else ""))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
