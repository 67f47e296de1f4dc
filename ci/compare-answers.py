#!/usr/bin/env python3
"""Compares the answers of two builds of `blockyard`, number by number.

    ci/compare-answers.py hash PROGRAM FILE [PATTERN]     writes a hash for each device and design
    ci/compare-answers.py check PROGRAM FILE [PATTERN]    compares these hashes with those in FILE
    ci/compare-answers.py diff PROGRAM PROGRAM [PATTERN]  prints every difference of the second
    ci/compare-answers.py record PROGRAM FILE [PATTERN]   keeps the answers of PROGRAM in FILE (gzip)
    ci/compare-answers.py FILE PROGRAM [PATTERN]          compares the answers of PROGRAM with FILE

Every job in examples/, shortened if it is long, runs on every built-in device under every built-in
design, and every published experiment is reproduced. Where the program before answers, the program
after must answer too, and every number of the old JSON must stand in the new one: at the same place
in `run` and `reproduce`, anywhere under the same design in `whatif`, whose layout may change. Where
the old program refuses, the new one must refuse with the same exit code. PATTERN, a regular
expression, selects cases by their name, such as
`run examples/fsync.fio --device null --design mq-none`.

`ci/answers.txt` has a line for each device and design: the hash of their `run` of all jobs, the
device and the design. A change of these belongs to a commit that says why. With `hash` and `check`,
PATTERN selects by `--device null --design mq-none`, because a hash is that of all jobs. `diff`
shows what has changed: give it a build of the commit before and today's, and one of the names that
`check` prints.

Exit code 0: no number differs. 1: some differ; with FILE, up to five lines for each case say where.
2: bad usage.
"""

import collections
import concurrent.futures
import gzip
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
# On memory the long SCSI and MMC jobs take minutes and show nothing that these do not.
JOBS_ON_PMEM = r"pmem|fsync|dd|find"
# Long jobs run as shorter copies, which take half of the time in all and differ in the same
# places: 64 jobs at depth 64 do 20,000 I/Os in 100 ms of a device of 200,000 IOPS.
SHORTENED = {"runtime=1s": "runtime=100ms", "number_ios=1024": "number_ios=128"}
# A comparison with a file prints as many lines for each case.
LINES_MAX = 5


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


def copy_shortened(folder):
    """Copies the jobs, shortened, to the same paths below `folder`."""
    for job in jobs():
        with open(os.path.join(ROOT, job)) as file:
            lines = file.read().splitlines()
        copy = os.path.join(folder, job)
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        with open(copy, "w") as file:
            file.writelines(f"{SHORTENED.get(line, line)}\n" for line in lines)


def answer(program, arguments, folder):
    """The exit code and the JSON of `arguments` on the jobs in `folder`."""
    command = [program, *arguments, "--output-format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
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


def pairs(program):
    """Each device and design, as arguments of `run`."""
    designs = names(program, "design")
    for device in names(program, "device"):
        for design in designs:
            yield f"--device {device} --design {design}"


def jobs_on(device):
    """The jobs that run on a device."""
    pmem = device.startswith("pmem")
    return [job for job in jobs() if not pmem or re.search(JOBS_ON_PMEM, job)]


def cases(program):
    for pair in pairs(program):
        for job in jobs_on(pair.split()[1]):
            yield f"run {job} {pair}"
    for device in names(program, "device"):
        pair = "pmem-raw,btt" if device.startswith("pmem") else "mq-none,mq-deadline"
        for job in jobs_on(device):
            yield f"whatif {job} --device {device} --design {pair}"
    listed = subprocess.run([program, "reproduce"], capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines()[1:]:
        yield f"reproduce {line.split()[0]}"


def answers(program, selected):
    """The exit code and the JSON of each case, in their order."""
    with tempfile.TemporaryDirectory() as folder:
        copy_shortened(folder)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            yield from pool.map(lambda case: answer(program, case.split(), folder), selected)


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


def hash_of(answered):
    """The hash of a device and a design: of the jobs that are not refused, and their answers'
    hashes.

    Keys come in order, so that their order is no difference.
    """
    lines = []
    for job, found in answered:
        text = json.dumps(found, sort_keys=True).encode()
        lines.append(f"{hashlib.sha256(text).hexdigest()[:12]} {job}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:12]


def lines_of(program, pattern):
    """A line for each device and design that some job runs on."""
    selected = [(pair, job) for pair in pairs(program) if pattern.search(pair) for job in jobs_on(pair.split()[1])]
    found = answers(program, [f"run {job} {pair}" for pair, job in selected])
    runs = zip(selected, found, strict=True)
    for pair, group in itertools.groupby(runs, key=lambda run: run[0][0]):
        answered = [(job, found) for (_, job), (code, found) in group if code == 0]
        if answered:
            _, device, _, design = pair.split()
            yield f"{hash_of(answered)} {device} {design}"


def hashes(program, file, pattern):
    lines = list(lines_of(program, pattern))
    with open(file, "w") as out:
        out.writelines(f"{line}\n" for line in lines)
    print(f"{len(lines)} devices and designs hashed")
    return 0


def check(program, file, pattern):
    with open(file) as lines:
        known = dict(reversed(line.rstrip("\n").split(" ", 1)) for line in lines)
    found = dict(reversed(line.split(" ", 1)) for line in lines_of(program, pattern))
    wrong = 0
    for pair in dict.fromkeys([*known, *found]):
        device, design = pair.split()
        name = f"--device {device} --design {design}"
        if pattern.search(name) and known.get(pair) != found.get(pair):
            before, after = (which.get(pair, "no answer") for which in (known, found))
            print(f"{name}: {before} is now {after}", flush=True)
            wrong += 1
    print(f"{len(found)} devices and designs compared, {wrong} differ")
    return 1 if wrong or not found else 0


def compare(case_lines, found, lines_max):
    """Prints up to `lines_max` differences of each case, all if it is None."""
    count = wrong = 0
    for (case, before), after in zip(case_lines, found, strict=True):
        lines = differences(case, before, after)
        count += 1
        wrong += bool(lines)
        for line in lines[:lines_max]:
            print(f"{case}: {line}", flush=True)
    print(f"{count} answers compared, {wrong} differ")
    return 1 if wrong or not count else 0


def compare_with_file(file, program, pattern):
    with gzip.open(file, "rt") as lines:
        kept = [(case, found) for case, found in map(json.loads, lines) if pattern.search(case)]
    return compare(kept, answers(program, [case for case, _ in kept]), LINES_MAX)


def compare_programs(before, after, pattern):
    selected = [case for case in cases(before) if pattern.search(case)]
    kept = zip(selected, answers(before, selected), strict=True)
    return compare(kept, answers(after, selected), None)


ACTIONS = {"hash": hashes, "check": check, "diff": compare_programs, "record": record}


def main(arguments):
    action = compare_with_file
    if arguments and arguments[0] in ACTIONS:
        action = ACTIONS[arguments[0]]
        arguments = arguments[1:]
    if len(arguments) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    first, second = map(os.path.abspath, arguments[:2])
    os.chdir(ROOT)
    return action(first, second, re.compile(arguments[2] if len(arguments) == 3 else ""))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
