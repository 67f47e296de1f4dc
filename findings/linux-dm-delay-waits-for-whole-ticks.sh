#!/usr/bin/env bash
# Linux's dm-delay with a delay of 1 ms delays each read by 4 ms, and 32 at once end together.
#
# The target takes its delays in milliseconds, and makes whole ticks of the kernel of them, 4 ms
# each in Debian. A delayed bio goes on at a tick. So 1 and 2 ms are one delay, and a disk that is
# made slower by 5 ms is slower by 8. From 50 ms on, one tick more is added. With many in flight,
# nothing comes between two ticks, and all that are due come at once: 32 each 4 ms at depth 32, and
# not 32 each ms.
#
# Here the disk below takes 0.1 ms for a read, and fio reads for a second at depth 1 and 32. The
# milliseconds for which a read lasts:
#
#   delay      1    2    5   10   20   50
#   depth 1    4    4    8   12   20   56
#   depth 32   4    4    8   12   20   56
#
# Seen with Linux 6.12.117-1 and 7.3.4-1~bpo13+1, dmsetup 1.02.205-2 and fio 3.39-1 of Debian 13
# (trixie, trixie-backports), 2026-11-29. Boots each in QEMU without KVM, where time passes with
# instructions, some 40 seconds per kernel. Needs apt-get on amd64, and 600 MB in the temporary
# folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_trixie fio=3.39-1 dmsetup=2:1.02.205-2
for path in usr/bin/fio usr/sbin/dmsetup; do copy_program "$path"; done
QEMU_DEVICES=(-icount 'shift=0,sleep=off')

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
for name in configfs dm-mod dm-delay; do
    [ -s "/$name.ko" ] && insmod "/$name.ko"
done
insmod /null_blk.ko nr_devices=1 gb=1 queue_mode=2 irqmode=2 completion_nsec=100000 submit_queues=1

# Prints the milliseconds of a read at the depth $1.
lasted() {
    fio --name=job --filename=/dev/dm-0 --ioengine=libaio --iodepth="$1" --direct=1 --rw=randread --bs=4k --runtime=1 \
        --time_based --output-format=json --output=/tmp/out || echo "seen: failed"
    awk '/"clat_ns"/ { inside = 1 } inside && /"mean"/ { gsub(/[^0-9.]/, ""); printf "%.0f", $0 / 1e6; exit }' /tmp/out
}
for delay in 1 2 5 10 20 50; do
    echo "0 2097152 delay /dev/nullb0 0 $delay" | dmsetup create --noudevsync slow
    echo "seen: $delay ms: $(lasted 1) $(lasted 32)"
    dmsetup remove --noudevsync slow
done
poweroff -f
INIT
chmod +x "$guest/init"

status=0
for kernel in "${TRIXIE_KERNELS[@]}"; do
    rm -f "$guest"/*.ko
    for name in dm-mod dm-delay; do module "$kernel" "drivers/md/$name" "$name.ko"; done
    boot_with_null_blk "$kernel" '50 ms'
    printf '%s\n' "Linux $kernel: delay, and milliseconds of a read at depth 1 and 32" "$seen"
    [[ "$seen" == $'1 ms: 4 4\n2 ms: 4 4\n5 ms: 8 8\n10 ms: 12 12\n20 ms: 20 20\n50 ms: 56 56' ]] || status=1
done
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
