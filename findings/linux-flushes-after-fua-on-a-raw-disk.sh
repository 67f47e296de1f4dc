#!/usr/bin/env bash
# On a raw disk, Linux does a direct write with O_DSYNC as a write with FUA and a flush of the disk.
#
# FUA makes the write durable by itself. On a file of XFS, Linux sends such a write alone. On the
# block device, a program that waits in pwrite, as fio's psync, gets the flush in addition, and
# waits for both. With libaio and io_uring, there is no flush. So `sync=dsync` on the raw disk shows
# what fdatasync costs, and not what FUA does, and a database on a file is faster than the disk
# below it seems.
#
# Here a null_blk disk has a cache and FUA, and fio overwrites 100 blocks of 4 KiB with sync=dsync.
# Writes with FUA that the disk gets, and flushes:
#
#            psync      libaio   io_uring
#   disk     100, 100   100, 0   100, 0
#   XFS      100, 0     100, 0   100, 0
#
# Seen with Linux 6.12.117-1 and 7.3.4-1~bpo13+1, xfsprogs 6.13.0-2+deb13u1 and fio 3.39-1 of Debian
# 13 (trixie, trixie-backports), 2026-11-29. Boots each in QEMU without KVM, some 20 seconds per
# kernel. Needs apt-get on amd64, and 600 MB in the temporary folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_trixie fio=3.39-1 xfsprogs=6.13.0-2+deb13u1
for path in usr/bin/fio usr/sbin/mkfs.xfs; do copy_program "$path"; done

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
mount -t tracefs trace /sys/kernel/tracing
for name in configfs crc32c-intel libcrc32c xfs; do
    [ -s "/$name.ko" ] && insmod "/$name.ko"
done
insmod /null_blk.ko nr_devices=1 gb=1 queue_mode=2 submit_queues=1 memory_backed=1 cache_size=16 fua=1
echo 1 >/sys/kernel/tracing/events/block/block_rq_issue/enable
# Prints the writes with FUA and the flushes of 100 writes to the file $1 by the engine $2.
sent() {
    sync
    echo >/sys/kernel/tracing/trace
    fio --name=job --filename="$1" --ioengine="$2" --direct=1 --sync=dsync --rw=write --bs=4k --size=400k --overwrite=1 \
        --output=/tmp/out || echo "seen: failed"
    awk '/block_rq_issue: .* WFS 4096 / { fua++ } /block_rq_issue: .* FF / { flushes++ }
        END { print fua + 0, flushes + 0 }' /sys/kernel/tracing/trace
}
echo "seen: disk: psync $(sent /dev/nullb0 psync), libaio $(sent /dev/nullb0 libaio), io_uring $(sent /dev/nullb0 io_uring)"
mkfs.xfs -q /dev/nullb0
mount -t xfs /dev/nullb0 /disk
dd if=/dev/zero of=/disk/file bs=400K count=1 conv=fsync 2>/dev/null
echo "seen: XFS: psync $(sent /disk/file psync), libaio $(sent /disk/file libaio), io_uring $(sent /disk/file io_uring)"
poweroff -f
INIT
chmod +x "$guest/init"

KERNELS=("${TRIXIE_KERNELS[@]}")
prepare() {
    rm -f "$guest"/*.ko
    for path in arch/x86/crypto/crc32c-intel lib/libcrc32c fs/xfs/xfs fs/configfs/configfs drivers/block/null_blk/null_blk; do
        module "$1" "$path" "${path##*/}.ko"
    done
}

expect_of_each_kernel XFS 'disk: psync 100 100, libaio 100 0, io_uring 100 0
XFS: psync 100 0, libaio 100 0, io_uring 100 0'
