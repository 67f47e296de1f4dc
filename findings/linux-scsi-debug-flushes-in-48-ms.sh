#!/usr/bin/env bash
# Linux's scsi_debug with `ndelay=100000` takes 0.1 ms for a write and 48 ms for a flush.
#
# The parameters `delay` (ticks of 4 ms) and `ndelay` (nanoseconds) say how long a command takes,
# says their description. SYNCHRONIZE CACHE after a write takes 48 ms with both of the delays here.
# A comment in the driver's source explains it: a flush takes a twentieth of the time of a spin-up,
# which is a second, or `delay` seconds for a `delay` above 1; `ndelay` of at most 10,000 is exempt.
# Reads and writes behave as set, so the disk looks right, and a job that syncs measures a different
# one. The disk reports a cache that is written back, so file systems flush it.
#
# Here fio writes 4 KiB at random for two seconds. Writes, without and with fdatasync after each:
#
#   delay=0          146,000   59,000 to 69,000
#   delay=1              498   39
#   ndelay=100000     17,500   42
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
# Prints the number of writes of 4 KiB in two seconds, with the options $@.
writes() {
    before="$(awk '{ print $7 }' /sys/block/sda/stat)"
    fio --name=job --filename=/dev/sda --ioengine=psync --direct=1 --rw=randwrite --bs=4k --runtime=2 --time_based \
        --output=/tmp/out "$@" || echo "seen: failed"
    after="$(awk '{ print $7 }' /sys/block/sda/stat)"
    echo $(((after - before) / 8))
}
for delay in 'delay=0' 'delay=1' 'delay=0 ndelay=100000'; do
    load_scsi_debug dev_size_mb=64 $delay
    sleep 1
    echo "seen: ${delay#*0 } $(writes) $(writes --fdatasync=1)"
    rmmod scsi_debug
    while [ -e /sys/block/sda ]; do sleep 1; done
done
poweroff -f
INIT
chmod +x "$guest/init"

status=0
for kernel in "${TRIXIE_KERNELS[@]}"; do
    boot_with_scsi_debug "$kernel" ndelay
    echo "Linux $kernel"
    while read -r delay writes synced; do
        echo "$delay: $writes writes in two seconds, $synced with fdatasync"
        case "$delay" in
        delay=0) ((writes > 50000 && synced > 20000)) || status=1 ;;
        delay=1) ((writes > 400 && synced < 50)) || status=1 ;;
        *) ((writes > 15000 && synced < 50)) || status=1 ;;
        esac
    done <<<"$seen"
done
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
