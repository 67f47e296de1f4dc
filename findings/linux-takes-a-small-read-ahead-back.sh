#!/usr/bin/env bash
# Linux sets a small `read_ahead_kb` back to its default when another attribute of the disk is
# written, or the disk is looked at anew.
#
# Databases that map their files ask for a short read-ahead, by `blockdev --setra` or a rule of
# udev. Since limits of a queue are changed as one, each change computes the read-ahead again, and
# takes the larger one of the present value and the default. So `max_sectors_kb`, `rotational`,
# `write_cache`, `iostats` and others, even if they get the value that they have, bring the default
# back, and so does a rescan of a SCSI disk or `blockdev --rereadpt`. Which attribute a script sets
# last decides what the disk reads. `scheduler`, `nr_requests` and `wbt_lat_usec` change nothing,
# and a long read-ahead stays. Linux 6.1 keeps what it was told.
#
# Here `read_ahead_kb` of a SCSI disk is set to 16 and `iostats` to the value that it has. Then fio
# reads 32 times 4 KiB at random through mmap. The attribute, and KiB read from the disk:
#
#   Linux                      6.1      6.12            7.3
#   as the disk comes   1024, 26324   1024, 26324   1024, 26324
#   set to 16           16, 512       16, 512       16, 512
#   after iostats       16, 512       1024, 26324   1024, 26324
#   after a rescan      16, 512       1024, 26324   1024, 26324
#
# Seen with Linux 6.1.176-1 of Debian 12 (bookworm), and 6.12.117-1 and 7.3.4-1~bpo13+1 and fio
# 3.39-1 of Debian 13 (trixie, trixie-backports), 2026-11-29. Boots each in QEMU without KVM, some
# 20 seconds per kernel. Needs apt-get on amd64, and 600 MB in the temporary folder. Fails if this
# changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_trixie fio=3.39-1
copy_program usr/bin/fio

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
load_scsi_debug dev_size_mb=64 delay=0
queue=/sys/block/sda/queue
# Prints the read-ahead, and what is read from the disk for 32 page faults.
reads() {
    echo 3 >/proc/sys/vm/drop_caches
    before="$(awk '{ print $3 }' /sys/block/sda/stat)"
    fio --name=job --filename=/dev/sda --ioengine=mmap --fadvise_hint=0 --rw=randread --bs=4k --size=64m --number_ios=32 \
        --output=/tmp/out || echo "seen: failed"
    after="$(awk '{ print $3 }' /sys/block/sda/stat)"
    echo "read_ahead_kb $(cat $queue/read_ahead_kb), $(((after - before) / 2)) KiB"
}
echo "seen: as the disk comes: $(reads)"
echo 16 >$queue/read_ahead_kb
echo "seen: set to 16: $(reads)"
cat $queue/iostats >$queue/iostats
echo "seen: after iostats: $(reads)"
echo 16 >$queue/read_ahead_kb
echo 1 >/sys/block/sda/device/rescan
echo "seen: after a rescan: $(reads)"
poweroff -f
INIT
chmod +x "$guest/init"

status=0
# Fails unless the read-ahead of the kernel $1 is $2 KiB after the two events.
expect() {
    boot_with_scsi_debug "$1" 'after a rescan'
    printf '%s\n' "Linux $1" "$seen"
    local values
    values="$(sed 's/.*read_ahead_kb \(.*\), .*/\1/' <<<"$seen" | paste -sd' ')"
    [[ "$values" == "1024 16 $2 $2" ]] || status=1
}
expect linux-image-6.1.0-50-cloud-amd64 16
expect "${TRIXIE_KERNELS[0]}" 1024
expect "${TRIXIE_KERNELS[1]}" 1024
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
