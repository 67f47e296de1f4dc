#!/usr/bin/env python3
"""Runs MQSim's sample workloads on MQSim and on our model of flash with the same parameters, and
compares them.

    ci/mqsim/run.py PROGRAM MQSIM

PROGRAM is ours, as a release build. MQSIM is a folder with MQSim's sources
(github.com/CMU-SAFARI/MQSim); they are built there by their Makefile if they are not yet. The
scenarios of its `workload.xml` run one by one on its `ssdconfig.xml`. `drive.toml` in this folder
is that device as ours, and the jobs beside it are the scenarios; the trace becomes a log of fio.

Each scenario runs in two ways: as shipped for a second, where nearly every request reads a page of
the map from flash; and with the whole map in memory for ten. As shipped for longer, MQSim's answer
depends on how long: its map fills its memory after some 233000 requests, and from then on it takes
pages that it must write back as if they were in memory. It never writes them, because no scheduler
of it looks at them.

Prints a table: the mean response of each in us, ours in percent of MQSim's, and the requests that
each simulated per second of its processor time. Exit code 0: the means of the synthetic scenarios
agree within PERCENT. 1: they do not. 2: bad usage. 3: there is no MQSim, and a line says so.
"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PERCENT = 10
# The scenarios in the order of workload.xml, and the job of each that is one.
SCENARIOS = [("writes", "writes.fio"), ("reads", "reads.fio"), ("tpcc-small", None)]
# For each way, whether the whole map is in memory, and the seconds of the synthetic scenarios. The
# memory for the map is that of the device.
WAYS = [("from flash", False, 1), ("in memory", True, 10)]
MAP_MEMORY = ["--set", "flash.map-memory=2MiB"]


def timed(command, **options):
    """Runs a command. Returns what it printed, and the seconds of a processor that it took."""

    def seconds():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = seconds()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout, seconds() - before


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def mqsim(folder, work, number, ideal, duration):
    """Runs scenario `number`; a synthetic one, for that many seconds.

    Returns its requests, their mean response in us, and the seconds.
    """
    device = read(os.path.join(folder, "ssdconfig.xml"))
    if ideal:
        device = re.sub(r"(<Ideal_Mapping_Table>)\w+", r"\1true", device)
    scenario = re.findall(r"<IO_Scenario>.*?</IO_Scenario>", read(os.path.join(folder, "workload.xml")), re.S)[number]
    scenario = re.sub(r"(<Stop_Time>)\d+", rf"\g<1>{duration}000000000", scenario)
    paths = [os.path.join(work, name) for name in ("device.xml", "load.xml", "load_scenario_1.xml")]
    write(paths[0], device)
    write(paths[1], f"<MQSim_IO_Scenarios>\n{scenario}\n</MQSim_IO_Scenarios>\n")
    _, seconds = timed(["./MQSim", "-i", paths[0], "-w", paths[1]], cwd=folder)
    result = read(paths[2])

    def numbers(tag):
        return [int(number) for number in re.findall(f"<{tag}>(\\d+)</{tag}>", result)]

    requests, means = numbers("Request_Count"), numbers("Device_Response_Time")
    return sum(requests), sum(n * mean for n, mean in zip(requests, means, strict=True)) / sum(requests), seconds


def iolog(trace, path):
    """Writes MQSim's trace as fio's log, with 4 KiB for each page of 8 KiB that a request touches."""
    lines = ["fio version 3 iolog", "0 drive add", "0 drive open"]
    begin = None
    for line in read(trace).split("\n"):
        fields = line.split()
        if not fields:
            continue
        time, _, sector, sectors, kind = map(int, fields)
        begin = time if begin is None else begin
        first, last = sector // 16, (sector + sectors - 1) // 16
        action = "write" if kind == 0 else "read"
        lines.append(f"{(time - begin) // 1000} drive {action} {first * 4096} {(last - first + 1) * 4096}")
    write(path, "\n".join(lines) + "\n")


def ours(program, folder, work, job, ideal, duration):
    """Runs a job for that many seconds, or the trace.

    Returns its requests, their mean response in us, and the seconds.
    """
    if job:
        load = ["--runtime", f"{duration}s", os.path.join(HERE, job)]
    else:
        trace = os.path.join(work, "trace.log")
        iolog(os.path.join(folder, "traces", "tpcc-small.trace"), trace)
        load = ["--replay", trace, "--pace", "open", "--map", "wrap"]
    drive = ["--device", os.path.join(HERE, "drive.toml"), *([] if ideal else MAP_MEMORY)]
    printed, seconds = timed([program, "run", "--quiet", *drive, "--output-format", "json", *load])
    parts = [job[side] for job in json.loads(printed)["jobs"] for side in ("read", "write")]
    requests = sum(part["total_ios"] for part in parts)
    return requests, sum(part["total_ios"] * part["lat_ns"]["mean"] for part in parts) / requests / 1000, seconds


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    program, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    if not os.path.exists(os.path.join(folder, "ssdconfig.xml")):
        print(f"NOT CHECKED: MQSim, whose sources are not in {folder}")
        return 3
    timed(["make", "-C", folder])
    head = ("workload", "map", "MQSim us", "ours us", "ours %", "MQSim /s", "ours /s", "times")
    print("{:<12} {:<10} {:>9} {:>9} {:>7} {:>10} {:>10} {:>6}".format(*head))
    agree = True
    with tempfile.TemporaryDirectory() as work:
        for number, (name, job) in enumerate(SCENARIOS):
            for way, ideal, duration in WAYS:
                theirs, their_mean, their_seconds = mqsim(folder, work, number, ideal, duration)
                requests, mean, seconds = ours(program, folder, work, job, ideal, duration)
                their_rate, rate, percent = theirs / their_seconds, requests / seconds, 100 * mean / their_mean
                times = rate / their_rate
                print(
                    f"{name:<12} {way:<10} {their_mean:>9.1f} {mean:>9.1f} {percent:>7.1f}"
                    f" {their_rate:>10.0f} {rate:>10.0f} {times:>6.1f}"
                )
                agree = agree and (job is None or abs(percent - 100) <= PERCENT)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
