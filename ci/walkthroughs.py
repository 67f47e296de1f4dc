#!/usr/bin/env python3
"""Runs the commands that the documents show, and compares what they print with what stands there.

    ci/walkthroughs.py PROGRAM FILE...            says where a document differs, and fails
    ci/walkthroughs.py --update PROGRAM FILE...   writes what the commands print into the documents

A command stands in a block of text as `$ blockyard ...`, and the lines below it up to the next
command or the end of the block are what it prints. A command that serves, or that needs a server,
is not run: it has no lines below it, or the line before the block says `<!-- not run -->`. After
`<!-- lines 1-3 9-15 -->` the block has these lines alone of what the command prints, and `...`
where others were left out.
"""

import os
import re
import shlex
import subprocess
import sys

BLOCK = re.compile(r"(<!-- not run -->\n|<!-- lines [0-9 -]+-->\n)?```text\n(.*?)```", re.S)


def printed(program, command):
    words = [program, *shlex.split(command)[1:]]
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=60)
    # 1 is also the answer that a goal is missed.
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(f"{command}: exit code {done.returncode}: {done.stderr}")
    return done.stdout


def excerpt(ranges, text):
    """Returns the lines of the ranges `1-3 9-15`.

    A line `...` replaces each gap, and the lines after the last range.
    """
    lines = text.splitlines(keepends=True)
    parts, end = [], 0
    for first, last in ([int(number) for number in one.split("-")] for one in ranges.split()):
        parts += ["...\n"] * (first > end + 1) + lines[first - 1 : last]
        end = last
    return "".join(parts + ["...\n"] * (end < len(lines)))


def replaced(program, block):
    mark = block.group(1) or ""
    if "not run" in mark:
        return block.group(0)
    ranges = mark.removeprefix("<!-- lines").removesuffix("-->\n")
    parts = re.split(r"^\$ (blockyard .*)\n", block.group(2), flags=re.M)
    text = parts[0]
    for command, below in zip(parts[1::2], parts[2::2], strict=True):
        output = printed(program, command) if below.strip() else below
        text += f"$ {command}\n" + (excerpt(ranges, output) if ranges else output)
    return f"{mark}```text\n{text}```"


def main(arguments):
    update = arguments[:1] == ["--update"]
    program, *files = arguments[update:]
    status, commands = 0, 0
    for file in files:
        before = open(file, encoding="utf-8").read()
        after = BLOCK.sub(lambda block: replaced(program, block), before)
        commands += len(re.findall(r"^\$ blockyard ", before, flags=re.M))
        if update:
            open(file, "w", encoding="utf-8").write(after)
            continue
        lines = zip(before.splitlines(), after.splitlines(), strict=False)
        for number, (old, new) in enumerate(lines, 1):
            if old != new:
                print(f"{file}:{number}: it shows\n  {old}\nand today's program prints\n  {new}")
                break
        status |= before != after
    print(f"{commands} commands in {len(files)} documents")
    return status


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
