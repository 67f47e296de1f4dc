#!/usr/bin/env bash
# fio's `ioengine=pvsync2 hipri=1` polls nothing on Linux 6.1, 6.12 and 7.3.
#
# RWF_HIPRI asked the kernel to poll the disk for the end of an I/O. For reads and writes that a
# program waits for in one call, Linux takes the flag without an error and ignores it. Only io_uring
# polls, and there fio's option of the same name works. So the pair of `hipri=0` and `hipri=1`, by
# which one compares interrupts with polling, measures the same thing twice.
#
# Here a null_blk disk has a queue for polled I/O, where a read has ended when it is asked for, and
# reads of the other queue end 1 ms later, by a timer. fio does 300 direct reads of 4 KiB. The
# microseconds of a read:
#
#   Linux                 6.1    6.12     7.3
#   pvsync2             1,009   1,096   1,388
#   pvsync2, hipri=1    1,009   1,011   1,011
#   io_uring            1,011   1,011   1,012
#   io_uring, hipri=1       7       7       7
#
# Seen with Linux 6.1.176-1 of Debian 12 (bookworm), and 6.12.117-1 and 7.3.4-1~bpo13+1 and fio
# 3.39-1 of Debian 13 (trixie, trixie-backports), 2026-11-29. Boots each in QEMU without KVM, where
# time passes with instructions, some 20 seconds per kernel. Needs apt-get on amd64, and 600 MB in
# the temporary folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_trixie fio=3.39-1
copy_program usr/bin/fio
KERNELS=("${KERNELS[0]}" "${TRIXIE_KERNELS[@]}")
QEMU_DEVICES=(-icount 'shift=0,sleep=off')

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
[ -s /configfs.ko ] && insmod /configfs.ko
insmod /null_blk.ko nr_devices=1 gb=1 queue_mode=2 submit_queues=1 poll_queues=1 irqmode=2 completion_nsec=1000000
echo none >/sys/block/nullb0/queue/scheduler
for engine in pvsync2 io_uring; do
    for hipri in 0 1; do
        fio --name=job --filename=/dev/nullb0 --ioengine="$engine" --hipri="$hipri" --direct=1 --rw=randread --bs=4k --size=64m \
            --number_ios=300 --output-format=terse --output=/tmp/out || echo "seen: failed"
        echo "seen: $engine, hipri=$hipri: $(cut -d';' -f40 /tmp/out)"
    done
done
poweroff -f
INIT
chmod +x "$guest/init"

status=0
for kernel in "${KERNELS[@]}"; do
    rm -f "$guest"/*.ko
    boot_with_null_blk "${kernel%%=*}" 'io_uring, hipri=1'
    printf '%s\n' "Linux ${kernel##*=}: microseconds of a read" "$seen"
    read -r waited polled ring ring_polled <<<"$(sed -E 's/.*: ([0-9]+).*/\1/' <<<"$seen" | paste -sd' ')"
    ((waited > 900 && polled > 900 && ring > 900 && ring_polled < 500)) || status=1
done
((status == 0)) || echo "fio or Linux no longer behaves as described" >&2
exit "$status"
