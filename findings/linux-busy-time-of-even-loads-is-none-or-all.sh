#!/usr/bin/env bash
# Linux 6.12 and 7.3 count a disk that is busy for half of the time as busy for 0 % or for 100 %.
#
# The tenth field of /sys/block/*/stat, from which iostat has its %util, grows by whole ticks of the
# kernel, 4 ms each in Debian: an I/O that begins and ends within a tick adds nothing, and one that
# spans the turn of a tick adds all of it. With I/Os at random moments that is right on average. But
# a program that sleeps between them wakes by the same clock. If its I/Os come every 4 ms, all of
# them span a turn or none does, and which it is changes from one run to the next.
#
# Here a null_blk device takes 2 ms for a read, and fio reads 250 times a second, evenly or at
# random (`rate_process=poisson`), for one second. The milliseconds of eight runs, by the fourth
# field (the time of reads) and the tenth:
#
#   evenly      503 ms of reads    0 to 8, or 1004 ms busy
#   at random   447 ms of reads    420 to 476 ms busy
#
# Seen with Linux 6.12.117-1 and 7.3.4-1~bpo13+1, and fio 3.39-1 of Debian 13 (trixie,
# trixie-backports), 2026-11-29. Boots each in QEMU without KVM, where time passes with
# instructions, some 40 seconds per kernel. Needs apt-get on amd64, and 600 MB in the temporary
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
[ -s /configfs.ko ] && insmod /configfs.ko
insmod /null_blk.ko nr_devices=1 gb=1 queue_mode=2 irqmode=2 completion_nsec=2000000 submit_queues=1
field() { awk "{ print \$$1 }" /sys/block/nullb0/stat; }
for gaps in linear poisson; do
    for run in 1 2 3 4 5 6 7 8; do
        usleep $((run * 1300))
        busy="$(field 10)" reads="$(field 4)"
        fio --name=job --filename=/dev/nullb0 --ioengine=psync --direct=1 --rw=randread --bs=4k --rate_iops=250 \
            --rate_process="$gaps" --runtime=1 --time_based --output=/tmp/out || echo "seen: failed"
        echo "seen: $gaps $(($(field 4) - reads)) $(($(field 10) - busy))"
    done
done
poweroff -f
INIT
chmod +x "$guest/init"

status=0
for kernel in "${TRIXIE_KERNELS[@]}"; do
    boot_with_null_blk "$kernel" poisson
    echo "Linux $kernel"
    while read -r gaps reads busy; do
        echo "$gaps gaps: $reads ms of reads, $busy ms busy"
        case "$gaps" in
        linear) ((reads > 450 && reads < 550 && (busy < 100 || busy > 900))) || status=1 ;;
        *) ((busy > 300 && busy < 600)) || status=1 ;;
        esac
    done <<<"$seen"
done
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
