#!/usr/bin/env bash
# Linux counts no iowait and no pressure of I/O for a process that waits for its disk with libaio.
#
# The time in `/proc/pressure/io` and the iowait of `/proc/stat`, which monitors show as "waits for
# the disk", is that of tasks that sleep inside the block layer. A task in io_getevents does not: it
# sleeps like one that waits for a socket. So a program that does nothing but wait for its disk
# through libaio, as some databases do, leaves both at zero. With a plain read, or io_uring, the
# same wait counts.
#
# Here fio reads at random for four seconds from a null_blk device that takes 2 ms for each I/O.
# Hundredths of a second of iowait, of 400, and milliseconds of pressure ("some"):
#
#   Linux     6.12            7.3
#   psync     360 and 3969    332 and 3897
#   io_uring  359 and 3635    366 and 3628
#   libaio    0 and 0         0 and 0
#
# Seen with Linux 6.12.117-1 and 7.3.4-1~bpo13+1, and fio 3.39-1 of Debian 13 (trixie,
# trixie-backports), 2026-11-29. Boots each in QEMU without KVM, where time passes with
# instructions, up to a minute per kernel. Needs apt-get on amd64, and 600 MB in the temporary
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
iowait() { awk '$1 == "cpu" { print $6 }' /proc/stat; }
pressure() { sed -n 's/^some.*total=//p' /proc/pressure/io; }
for engine in psync io_uring libaio; do
    ticks="$(iowait)"
    us="$(pressure)"
    fio --name=job --filename=/dev/nullb0 --ioengine="$engine" --direct=1 --iodepth=16 --rw=randread --bs=4k \
        --runtime=4 --time_based --output=/tmp/out || echo "seen: failed"
    # The counter of pressure is brought up to date when it is read, at most every two seconds.
    sleep 3
    echo "seen: $engine: $(($(iowait) - ticks)) $((($(pressure) - us) / 1000))"
done
poweroff -f
INIT
chmod +x "$guest/init"

status=0
for kernel in "${TRIXIE_KERNELS[@]}"; do
    boot_with_null_blk "$kernel" libaio
    echo "Linux $kernel"
    while read -r engine ticks ms; do
        echo "$engine iowait $ticks hundredths of a second, pressure $ms ms"
        case "$engine" in
        libaio:) ((ticks < 20 && ms < 200)) || status=1 ;;
        *) ((ticks > 100 && ms > 1000)) || status=1 ;;
        esac
    done <<<"$seen"
done
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
