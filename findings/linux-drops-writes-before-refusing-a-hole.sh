#!/usr/bin/env bash
# Linux 6.1 and 6.12 drop writes to a block device before they refuse to punch a hole there.
#
# `fallocate` with FALLOC_FL_PUNCH_HOLE and FALLOC_FL_KEEP_SIZE asks a block device for zeroes that
# need no writing. Linux empties the page cache of the range first, and only then finds that the
# device has no such command. The call fails with EOPNOTSUPP, but writes to the range that had not
# reached the device are gone: reads return the old data, and fsync succeeds. Writes that were
# synced before the call stay. So a program that tries the fast way, and takes the error for
# "nothing has happened", loses data.
#
# Here the device is a loop device over a file in ramfs, which cannot punch holes. On the device,
# 8192 bytes of `o` (old) are overwritten with `n` (new) through the page cache, and the hole is
# refused. The device is open throughout, because Linux syncs a device when its last user closes it:
#
#   not synced before the call: fallocate fails, fsync succeeds, the device has o
#   synced before the call:     fallocate fails, fsync succeeds, the device has n
#
# Seen with Linux 6.1.176-1 and 6.12.117-1~deb12u1 of Debian 12 (bookworm), 2026-11-27. Boots each
# in QEMU without KVM, some five seconds per kernel. Needs apt-get on amd64, and 300 MB in the
# temporary folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_files tools util-linux=2.38.1-5+deb12u3 libc6=2.36-9+deb12u14
cp "$scratch/tools/usr/bin/fallocate" "$guest/"
cp "$scratch/tools/lib/x86_64-linux-gnu/libc.so.6" "$guest/lib/x86_64-linux-gnu/"
cp "$scratch/tools/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" "$guest/lib64/"
cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
mount -t ramfs disk /disk
insmod /loop.ko

fill() { head -c 8192 /dev/zero | tr '\0' "$1"; }
fsync() { dd if=/dev/null of=/dev/loop0 conv=notrunc,fsync 2>/dev/null; }

for before in 'not synced' 'synced'; do
    fill o >/disk/file
    losetup /dev/loop0 /disk/file
    exec 3<>/dev/loop0
    fill n >/dev/loop0
    [ "$before" = 'synced' ] && fsync
    /fallocate --punch-hole --offset 0 --length 8192 /dev/loop0 2>/disk/error
    refused=$?
    fsync
    synced=$?
    echo "seen: $before: fallocate $refused ($(cat /disk/error)), fsync $synced, device $(tr -s on </dev/loop0)"
    exec 3>&-
    losetup -d /dev/loop0
done
poweroff -f
INIT
chmod +x "$guest/init"

prepare() { module "$1" drivers/block/loop loop.ko; }

# util-linux puts EOPNOTSUPP in words of its own.
refusal='fallocate 1 (fallocate: fallocate failed: keep size mode is unsupported)'
expected="not synced: $refusal, fsync 0, device o
synced: $refusal, fsync 0, device n"
expect_of_each_kernel synced "$expected"
