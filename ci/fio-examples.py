#!/usr/bin/env python3
"""Runs fio's example jobs, and compares what becomes of each with a list.

    ci/fio-examples.py PROGRAM FOLDER [--print]

FOLDER holds the `examples` of fio's sources, which are not part of this repository. Each of them
runs under `PROGRAM run` on a device that is large enough. An example runs if it ends, or if it
still runs after some seconds; or it is refused. `ci/fio-examples.txt` has a line for each: its
name, and `runs` or the reason of the refusal, which the message must contain. --print writes the
list of this run instead of comparing it.

Exit code 0: all as listed. 1: something else became of an example, or an example is not listed. 2:
bad usage. 3: FOLDER has no examples.
"""

import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, "fio-examples.txt")
# A null device with discards and enough disks for the names of a job.
DEVICE = """base = "null"
[limits]
max-discard-sectors = 524288
capacity = "8TiB"
"""
# The variables that the examples take from the environment.
VARIABLES = {
    "FIO_BS": "4k",
    "FIO_RW": "randread",
    "FIO_IODEPTH": "8",
    "FIO_DIR": "/tmp",
    "GPU_DEV_IDS": "0",
    "ncpus": "4",
    "mb_memory": "4096",
}
SECONDS = 3


def outcome(program, folder, name, device):
    """`runs`, or the message of the refusal without its place."""
    variables = [word for pair in VARIABLES.items() for word in ("--env", "=".join(pair))]
    job = os.path.join(folder, name)
    with tempfile.TemporaryDirectory() as scratch:  # some examples write logs
        try:
            done = subprocess.run(
                [program, "run", job, "--device", device, "--disks", "4", *variables],
                capture_output=True,
                text=True,
                cwd=scratch,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            return "runs"
    if done.returncode == 0:
        return "runs"
    error = next(line for line in done.stderr.splitlines() if line.startswith("blockyard: error: "))
    message = re.sub(r"^.*?\.fio(:\d+)?: ", "", error.removeprefix("blockyard: error: "))
    return message if done.returncode == 2 else f"FAILED: {message}"


def listed():
    with open(LIST) as lines:
        pairs = (line.rstrip("\n").split(maxsplit=1) for line in lines if not line.startswith("#"))
        return dict(pairs)


def main(arguments):
    if len(arguments) not in (2, 3) or arguments[2:] not in ([], ["--print"]):
        print(__doc__, file=sys.stderr)
        return 2
    program, folder = (os.path.abspath(argument) for argument in arguments[:2])
    names = sorted(name for name in os.listdir(folder) if name.endswith(".fio")) if os.path.isdir(folder) else []
    if not names:
        print(f"{folder} has no examples", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory() as scratch:
        device = os.path.join(scratch, "device.toml")
        with open(device, "w") as file:
            file.write(DEVICE)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            became = pool.map(lambda name: outcome(program, folder, name, device), names)
            found = dict(zip(names, became, strict=True))
    if "--print" in arguments:
        for name, became in found.items():
            print(f"{name:40} {became}")
        return 0
    known, wrong = listed(), 0
    for name, became in found.items():
        expected = known.pop(name, "not listed")
        print(f"{name:40} {became}")
        if expected not in became or (expected == "runs") != (became == "runs"):
            print(f"{name}: expected: {expected}")
            wrong += 1
    for name in known:
        print(f"{name}: listed, and not among the examples")
    counts = collections.Counter("run" if became == "runs" else "are refused" for became in found.values())
    print(", ".join(f"{count} {what}" for what, count in counts.items()) + f"; {wrong} not as listed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
