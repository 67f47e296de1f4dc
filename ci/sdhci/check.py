#!/usr/bin/env python3
"""Boots the program in QEMU, gives it orders, and checks what it says against QEMU's side of the
matter.

    ci/sdhci/check.py PROGRAM

For each case: the image file of the card must hold what the program says was acknowledged, and what
was there before everywhere else. The commands that the program says it sent must be those that QEMU
traced. Prints what an I/O cost. Exit code 0: all of it holds. 1: something does not; a line says
what.
"""

import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading

SECTOR = 512
CARD_BYTES = 64 << 20
# All designs, as the program names them.
DESIGNS = [
    f"{pipeline} {scheduler}"
    for pipeline in ("serial", "double-buffer", "hsq", "blkmq")
    for scheduler in ("none", "mq-deadline")
]
# The time limit of a case. Each takes a few seconds under software emulation.
LIMIT_SECONDS = 120
# The workload of a run (src/workload.rs): 16 places of 256 sectors, each with two neighbouring
# writes, and a write of 512 sectors; all of it is read again.
PLACES, PLACE_SECTORS, LARGEST_SECTORS = 16, 256, 512
BIOS = 2 * (2 * PLACES + 1)
MERGED = 2 * (PLACES + 1)
# A sector of the second run, in its largest transfer.
BAD_SECTOR = 2 * PLACES * PLACE_SECTORS + LARGEST_SECTORS + 100
# Capabilities of QEMU's controller without ADMA1 and ADMA2.
WITHOUT_ADMA = 0x056034B4
# A write that fails twice and a read that fails three times: 5 failures. A write that always fails
# is tried 3 times, a read too, and then twice with its first sector alone: 8. Each of the four bios
# is tried once after a reset.
FAILURES = "13 failures, 4 resets"


def pattern(sector, generation):
    """The content of a sector, as src/workload.rs defines it."""
    return struct.pack("<64Q", *(sector << 32 | generation << 8 | at for at in range(64)))


class Machine:
    """QEMU with the program: sends orders, reads lines."""

    def __init__(self, program, folder, controller, fails):
        self.image = os.path.join(folder, "card")
        self.trace = os.path.join(folder, "trace")
        self.monitor = os.path.join(folder, "monitor")
        self.before = random.Random(1).randbytes(CARD_BYTES)
        with open(self.image, "wb") as file:
            file.write(self.before)
        path = self.image
        if fails:
            errors = os.path.join(folder, "errors")
            with open(errors, "w") as file:
                file.write(f'[inject-error]\nevent = "{fails}_aio"\niotype = "{fails}"\nsector = "{BAD_SECTOR}"\n')
            path = f"blkdebug:{errors}:{self.image}"
        command = [
            "qemu-system-x86_64",
            "-accel",
            "tcg",
            "-m",
            "128",
            "-display",
            "none",
            "-vga",
            "none",
            "-nic",
            "none",
            "-no-reboot",
            "-serial",
            "stdio",
            "-kernel",
            program,
            "-device",
            "isa-debug-exit,iobase=0xf4,iosize=4",
            "-device",
            f"sdhci-pci{controller}",
            "-drive",
            f"if=none,id=medium,format=raw,file={path}",
            "-device",
            "sd-card,id=card,drive=medium",
            "-qmp",
            f"unix:{self.monitor},server=on,wait=off",
            "-trace",
            "sdhci_send_command",
            "-D",
            self.trace,
        ]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.timer = threading.Timer(LIMIT_SECONDS, self.process.kill)
        self.timer.start()
        self.lines = []

    def until(self, end):
        """Reads lines up to one that is `end`."""
        for line in self.process.stdout:
            line = line.decode(errors="replace").strip()
            self.lines.append(line)
            if line == end:
                return
        self.quit()
        raise SystemExit(f"the program ended before it said {end!r}; it said last: {self.lines[-1:]}")

    def order(self, letter):
        self.process.stdin.write(letter)
        self.process.stdin.flush()

    def tell_qemu(self, command, **arguments):
        """Sends a command to QEMU's monitor, which must accept it."""
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(self.monitor)
            stream = monitor.makefile("rw")
            stream.readline()
            for request in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
                stream.write(json.dumps(request))
                stream.flush()
                while "event" in (answer := json.loads(stream.readline())):
                    pass
                assert "return" in answer, answer

    def quit(self):
        """Waits for QEMU's end, and returns its exit code."""
        self.process.stdin.close()
        code = self.process.wait()
        self.timer.cancel()
        return code

    def stop_with(self, letter):
        """Gives an order that must end in a panic. Returns the panic's lines."""
        self.until("ready")
        self.order(letter)
        self.lines += [line.decode(errors="replace").strip() for line in self.process.stdout]
        assert self.quit() == 3, "the program did not notice"
        return self.lines[[line[:5] for line in self.lines].index("PANIC") :]

    def finish(self):
        self.until("ready")
        self.order(b"q")
        assert self.quit() == 1, "the program failed"

    def matches(self, form):
        return [match.groups() for match in map(re.compile(form).fullmatch, self.lines) if match]

    def wrong_sectors(self):
        """Returns the sectors of the image that do not hold what they must."""
        expected = bytearray(self.before)
        for line in self.lines:
            if match := re.fullmatch(r"wrote (\d+) (\d+) (\d+)", line):
                first, count, generation = map(int, match.groups())
                new = b"".join(pattern(sector, generation) for sector in range(first, first + count))
            elif match := re.fullmatch(r"discarded (\d+) (\d+)", line):
                first, count = map(int, match.groups())
                new = b"\xff" * SECTOR * count  # with which QEMU's card fills erased sectors
            else:
                continue
            expected[first * SECTOR : (first + count) * SECTOR] = new
        with open(self.image, "rb") as file:
            found = file.read()
        if found == expected:
            return []
        return [
            at // SECTOR for at in range(0, CARD_BYTES, SECTOR) if found[at : at + SECTOR] != expected[at : at + SECTOR]
        ]

    def check_image(self):
        wrong = self.wrong_sectors()
        assert not wrong, f"{len(wrong)} sectors differ from what was acknowledged, the first is {wrong[0]}"

    def traced(self):
        """The indices of the commands that QEMU saw from the program: those after the firmware's,
        which ends with its CMD7 of a card that is powered up."""
        with open(self.trace) as file:
            indices = [int(index) for index in re.findall(r"sdhci_send_command CMD(\d+)", file.read())]
        return indices[indices.index(7) + 1 :]


def check_card(machine, dma):
    cards = machine.matches(r"card (\d+) MiB, (\w+), (\d+) Hz, (\d) lanes, (\w+): (\d+) commands")
    best = (str(CARD_BYTES >> 20), "SdHighSpeed", "50000000", "4", dma)
    assert cards and all(card[:5] == best for card in cards), cards
    return sum(int(card[5]) for card in cards)


def check_runs(machine, dma):
    """Returns the commands of all runs."""
    runs = machine.matches(r"run (\S+ \S+): (\d+) bios, (\d+) commands, (\d+) interrupts")
    assert [run[0] for run in runs] == DESIGNS, runs
    for design, *numbers in runs:
        bios, commands, interrupts = map(int, numbers)
        print(f"  {design:26} {bios} bios, {commands} commands, {interrupts} interrupts")
        assert bios == BIOS and commands <= interrupts <= 2 * commands
        # As many transfers are writes as reads, and CMD13 follows each write of `blkmq`.
        least, most = ((3 * bios // 2 if design.startswith("blkmq") else bios) for bios in (MERGED, BIOS))
        if dma == "SDMA":
            assert commands == most, "SDMA needs memory in one piece, so no bios merge"
        elif design.endswith("mq-deadline"):
            assert commands == least, "all neighbours merge"
        else:
            assert least < commands < most, "some neighbours merge"
    return sum(int(run[2]) for run in runs)


def write_and_read(machine, dma):
    machine.until("ready")
    machine.order(b"w")
    machine.finish()
    sent = check_card(machine, dma) + check_runs(machine, dma)
    machine.check_image()
    # Beside those of the runs, QEMU saw three commands for each discard, and the status after it.
    discards = len(machine.matches(r"discarded .*"))
    traced = machine.traced()
    assert discards == 2 * len(DESIGNS) and traced.count(38) == discards, discards
    assert len(traced) == sent + 4 * discards, (len(traced), sent, discards)


def fail_transfers(machine):
    machine.until("ready")
    machine.order(b"f")
    machine.finish()
    assert machine.matches(r"fail (\S+ \S+): (.*)") == [(design, FAILURES) for design in DESIGNS]
    machine.check_image()


def notice_loss(machine):
    """QEMU's card keeps errors of its image file to itself: it acknowledges the write, or sends
    whatever it has for the read. Only the data shows it, and the program must see that."""
    panic = machine.stop_with(b"w")
    assert any(line.startswith(f"sector {BAD_SECTOR} holds") for line in panic), panic
    return machine.wrong_sectors()


def lose_write(machine):
    assert notice_loss(machine) == [BAD_SECTOR]


def lose_read(machine):
    assert notice_loss(machine) == []


def change_card(machine):
    machine.until("ready")
    machine.order(b"r")
    machine.until("remove")
    machine.tell_qemu("eject", id="card", force=True)
    machine.until("insert")
    machine.tell_qemu("blockdev-change-medium", id="card", filename=machine.image, format="raw")
    machine.until("ready")
    machine.order(b"w")
    machine.finish()
    check_runs(machine, "ADMA2")
    machine.check_image()


def main(program):
    def by(dma):
        return lambda machine: write_and_read(machine, dma)

    cases = [
        ("ADMA2", "", None, by("ADMA2")),
        ("SDMA", f",capareg={WITHOUT_ADMA}", None, by("SDMA")),
        ("version 3", ",sd-spec-version=3", None, by("ADMA2")),
        ("failed transfers", "", None, fail_transfers),
        ("a write that QEMU loses", "", "write", lose_write),
        ("a read that QEMU loses", "", "read", lose_read),
        ("a card that is removed", "", None, change_card),
    ]
    for name, controller, fails, run in cases:
        print(name, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            run(Machine(program, folder, controller, fails))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
