#!/usr/bin/env bash
# If a disk came with its cache off, Linux does not flush it after `sdparm --set WCE /dev/sda`.
#
# sdparm changes the disk's mode page. Linux reads that page when it finds the disk and when it
# looks at it anew, not when a program changes it. So while `cat /sys/block/sda/queue/write_cache`
# says "write through", fdatasync ends without SYNCHRONIZE CACHE, and what a file system has synced
# can be lost with the power. The other way around, the disk gets flushes of a cache that is off.
# `blockdev --rereadpt`, or `echo 1 >device/rescan`, lets Linux see the change, and so does a boot.
#
# Here fio does 20 direct writes of 4 KiB with fdatasync between them. The disk's WCE by sdparm,
# what Linux says of its cache, and flushes:
#
#   as the disk comes         1   write back      19
#   sdparm --clear WCE        0   write back      19
#   echo 1 >device/rescan     0   write through    0
#   sdparm --set WCE          1   write through    0
#   blockdev --rereadpt       1   write back      19
#
# Seen with Linux 6.12.117-1 and 7.3.4-1~bpo13+1, sdparm 1.12-2 and fio 3.39-1 of Debian 13 (trixie,
# trixie-backports), on scsi_debug, 2026-11-29. Boots each in QEMU without KVM, some 20 seconds per
# kernel. Needs apt-get on amd64, and 600 MB in the temporary folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_trixie fio=3.39-1 sdparm=1.12-2
for path in usr/bin/{fio,sdparm}; do copy_program "$path"; done
KERNELS=("${TRIXIE_KERNELS[@]}")

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
load_scsi_debug dev_size_mb=64 delay=0
flushes() { awk '{ print $16 }' /sys/block/sda/stat; }
# Prints what the disk and Linux say of the cache, and the flushes of 20 writes, after $1.
state() {
    before="$(flushes)"
    fio --name=job --filename=/dev/sda --ioengine=psync --direct=1 --rw=write --bs=4k --size=80k --fdatasync=1 --output=/tmp/out ||
        echo "seen: failed"
    echo "seen: $1: $(sdparm --quiet --get=WCE /dev/sda | awk '{ print $2 }'), $(cat /sys/block/sda/queue/write_cache)," \
        "$(($(flushes) - before)) flushes"
}
sleep 1
state 'as the disk comes'
sdparm --quiet --clear=WCE /dev/sda
state 'sdparm --clear WCE'
echo 1 >/sys/block/sda/device/rescan
state 'rescan'
sdparm --quiet --set=WCE /dev/sda
state 'sdparm --set WCE'
blockdev --rereadpt /dev/sda
state 'blockdev --rereadpt'
poweroff -f
INIT
chmod +x "$guest/init"

prepare() { prepare_scsi_debug "$1"; }

expect_of_each_kernel 'blockdev --rereadpt' 'as the disk comes: 1, write back, 19 flushes
sdparm --clear WCE: 0, write back, 19 flushes
rescan: 0, write through, 0 flushes
sdparm --set WCE: 1, write through, 0 flushes
blockdev --rereadpt: 1, write back, 19 flushes'
