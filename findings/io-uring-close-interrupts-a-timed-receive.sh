#!/usr/bin/env bash
# Linux 6.1, 6.12 and 6.18 end a `recv` with EINTR, without any signal, after its thread has closed
# an io_uring.
#
# The kernel frees an io_uring after close(2) has returned, and interrupts the threads that used the
# ring, the one that made it included. A thread that waits in a call with a time limit (SO_RCVTIMEO)
# then gets EINTR: without a limit the kernel would restart the call, with one it does not. No
# signal was sent, no handler ran, and the ring had no operation. So a program that probes at its
# start whether it may use io_uring can see a later read of a socket fail, although it handles no
# signals.
#
# Here a thread makes an io_uring, closes it or keeps it, and receives from a socket to which
# another thread writes 0.3 s later:
#
#   ring kept, time limit:       the byte arrives
#   ring closed, time limit:     EINTR
#   ring closed, no time limit:  the byte arrives
#
# Each is done eight times. Seen with Linux 6.1.176-1 and 6.12.117-1~deb12u1 of Debian 12
# (bookworm), and, with the Python below alone, with Linux 6.18.44, 2026-11-27. A thread of its own
# that makes the probe and ends keeps the others undisturbed. Boots each in QEMU without KVM, some
# ten seconds per kernel. Needs apt-get on amd64, and 400 MB in the temporary folder. Fails if this
# changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_files python {python3.11-minimal,libpython3.11-{minimal,stdlib}}=3.11.2-6+deb12u9 libffi8=3.4.4-1 libexpat1=2.5.0-1+deb12u5 \
    zlib1g=1:1.2.13.dfsg-1 libc6=2.36-9+deb12u14
mkdir -p "$guest/usr"
cp -r "$scratch/python/usr/lib" "$guest/usr/"
cp "$scratch/python/usr/bin/python3.11" "$guest/bin/"
cp -r "$scratch/python/lib/x86_64-linux-gnu/." "$guest/lib/x86_64-linux-gnu/"
cp "$scratch/python/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" "$guest/lib64/"
cat >"$guest/receive.py" <<'PYTHON'
import ctypes
import os
import socket
import struct
import threading

IO_URING_SETUP = 425
libc = ctypes.CDLL("libc.so.6", use_errno=True)


def received(closes, has_limit):
    """Returns what a receive gives after the thread has made an io_uring and perhaps closed it."""
    here, there = socket.socketpair()
    if has_limit:
        here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 30, 0))
    ring = libc.syscall(IO_URING_SETUP, 8, ctypes.create_string_buffer(120))
    assert ring >= 0, os.strerror(ctypes.get_errno())
    writer = threading.Timer(0.3, lambda: there.send(b"x"))
    writer.start()
    if closes:
        os.close(ring)
    count = libc.recv(here.fileno(), ctypes.create_string_buffer(1), 1, 0)
    result = "a byte" if count == 1 else os.strerror(ctypes.get_errno())
    writer.join()
    if not closes:
        os.close(ring)
    return result


def all_of(closes, has_limit):
    results = set()
    for _ in range(8):
        # A fresh thread, so that one ring's end does not meet the next receive.
        thread = threading.Thread(target=lambda: results.add(received(closes, has_limit)))
        thread.start()
        thread.join()
    return ", ".join(sorted(results))


print("seen: kept, limit:", all_of(False, True))
print("seen: closed, limit:", all_of(True, True))
print("seen: closed, no limit:", all_of(True, False))
PYTHON
cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/python3.11 /receive.py
/bin/busybox poweroff -f
INIT
chmod +x "$guest/init"

expected='kept, limit: a byte
closed, limit: Interrupted system call
closed, no limit: a byte'
expect_of_each_kernel 'closed, no limit' "$expected"
