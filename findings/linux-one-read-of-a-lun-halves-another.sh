#!/usr/bin/env bash
# On Linux, one read of 4 KiB from a LUN halves the IOPS of another LUN of its host for 5 seconds.
#
# The disks of a SCSI host share its tags. Linux divides them by the number of disks that it takes
# to be in use. A disk counts from its first request until it has had none for some seconds, however
# little it does. So the idle disk keeps its half of the tags, and of 32 commands, the busy disk has
# 16. A program that reads from each disk every few seconds holds all of them at their share for
# good, and a benchmark has other figures while it runs. The disks of null_blk with `shared_tags=1`
# do the same: half of the IOPS for 5 seconds.
#
# Here the host takes 32 commands and 1 ms for each, and fio reads one of its two disks at random
# with 64 in flight. IOPS of a second:
#
#   Linux                               6.12      7.3
#   alone                             29,939   29,995
#   after one read of the other disk  15,492   15,511
#   8 s later                         29,933   29,994
#
# Seen with Linux 6.12.117-1 and 7.3.4-1~bpo13+1, and fio 3.39-1 of Debian 13 (trixie,
# trixie-backports), on scsi_debug, 2026-11-29. Boots each in QEMU without KVM, where time passes
# with instructions, some 40 seconds per kernel. Needs apt-get on amd64, and 600 MB in the temporary
# folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_trixie fio=3.39-1
copy_program usr/bin/fio
QEMU_DEVICES=(-icount 'shift=0,sleep=off')

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
load_scsi_debug dev_size_mb=64 max_luns=2 max_queue=32 delay=0 ndelay=1000000
while [ ! -e /sys/block/sdb/queue/scheduler ]; do sleep 1; done
echo none >/sys/block/sda/queue/scheduler

# Prints how many reads the first disk does in a second.
reads() {
    before="$(awk '{ print $1 }' /sys/block/sda/stat)"
    fio --name=job --filename=/dev/sda --ioengine=libaio --iodepth=64 --direct=1 --rw=randread --bs=4k --runtime=1 --time_based \
        --output=/tmp/out || echo "seen: failed"
    after="$(awk '{ print $1 }' /sys/block/sda/stat)"
    echo $((after - before))
}
sleep 40
echo "seen: alone: $(reads)"
dd if=/dev/sdb of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null
echo "seen: after a read of the other: $(reads)"
sleep 8
echo "seen: 8 s later: $(reads)"
poweroff -f
INIT
chmod +x "$guest/init"

status=0
for kernel in "${TRIXIE_KERNELS[@]}"; do
    boot_with_scsi_debug "$kernel" '8 s later'
    printf '%s\n' "Linux $kernel: IOPS" "$seen"
    read -r alone after later <<<"$(sed 's/.*: //' <<<"$seen" | paste -sd' ')"
    ((after * 10 < alone * 6 && later * 10 > alone * 9)) || status=1
done
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
