#!/usr/bin/env python3
"""Runs a program that may not use io_uring, as Docker's default profile does since version 25.

Usage: ci/without-io-uring.py PROGRAM [ARGUMENT...]

The three system calls of io_uring end with EPERM, for the program and all that it starts.
"""

import ctypes
import os
import struct
import sys

# The offsets in struct seccomp_data, the codes of classic BPF and the numbers of prctl:
# linux/seccomp.h, linux/filter.h, linux/prctl.h. The system calls have these numbers on every
# architecture: io_uring came after the tables were joined.
NUMBER = 0
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
EPERM = 1
NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 38, 22, 2
SETUP, ENTER, REGISTER = 425, 426, 427


def filtered() -> None:
    """Installs the filter in this process."""
    steps = [
        (LOAD, 0, 0, NUMBER),
        (EQUAL, 3, 0, SETUP),
        (EQUAL, 2, 0, ENTER),
        (EQUAL, 1, 0, REGISTER),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, ERRNO | EPERM),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = struct.pack("@HP", len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in [(NO_NEW_PRIVILEGES, 1, 0, 0, 0), (SET_SECCOMP, FILTER, program, 0, 0)]:
        if libc.prctl(*call) != 0:
            sys.exit(f"without-io-uring: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    filtered()
    os.execvp(sys.argv[1], sys.argv[1:])
