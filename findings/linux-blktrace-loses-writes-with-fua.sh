#!/usr/bin/env bash
# On Linux 7.3, blktrace 1.3.0 of Debian 13 records no write with FUA, and reports none as dropped.
#
# Such writes (O_DSYNC with O_DIRECT, commits of journals) are absent from the trace of a disk that
# has FUA: there is no Q, G, D or C of them. blktrace says "dropped 0". So a load seems to write
# less than it does, and btt and a replay leave these writes out. Writes followed by fdatasync, and
# writes without a sync, are all there. On Linux 6.12 the same programs record each write.
#
# Here fio does ten direct writes of 4 KiB to a null_blk device with a cache and FUA, with
# `sync=dsync` and without. Writes issued (D) in the trace:
#
#   Linux     6.12   7.3
#   no sync     10    10
#   dsync       10     0
#
# Seen with Linux 6.12.117-1 and 7.3.4-1~bpo13+1, blktrace 1.3.0-0.2 and fio 3.39-1 of Debian 13
# (trixie, trixie-backports), 2026-11-29. Boots each in QEMU without KVM, some 20 seconds per
# kernel. Needs apt-get on amd64, and 600 MB in the temporary folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_trixie fio=3.39-1 blktrace=1.3.0-0.2
for path in usr/bin/fio usr/sbin/blktrace usr/bin/blkparse; do copy_program "$path"; done

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
mount -t debugfs debug /sys/kernel/debug
[ -s /configfs.ko ] && insmod /configfs.ko
insmod /null_blk.ko nr_devices=1 gb=1 queue_mode=2 irqmode=2 completion_nsec=1000000 submit_queues=1 \
    memory_backed=1 cache_size=16 fua=1
cd /tmp
for sync in none dsync; do
    blktrace -d /dev/nullb0 -o trace >messages 2>&1 &
    sleep 2
    fio --name=job --filename=/dev/nullb0 --ioengine=psync --direct=1 --rw=write --bs=4k --size=40k --sync="$sync" \
        --output=out || echo "seen: failed"
    sleep 2
    kill -INT $!
    wait $!
    writes="$(blkparse -i trace -f 'event %a %d\n' | grep -c '^event D W')"
    echo "seen: $sync: $writes writes, $(sed -n 's/.*Total:.*(\(dropped [0-9]*\)).*/\1/p' messages)"
    rm -f trace.*
done
poweroff -f
INIT
chmod +x "$guest/init"

status=0
# Fails unless the trace of the kernel $1 has $2 writes with FUA.
expect() {
    boot_with_null_blk "$1" dsync
    printf '%s\n' "Linux $1" "$seen"
    [[ "$seen" == $'none: 10 writes, dropped 0\ndsync: '"$2 writes, dropped 0" ]] || status=1
}
expect "${TRIXIE_KERNELS[0]}" 10
expect "${TRIXIE_KERNELS[1]}" 0
((status == 0)) || echo "Linux or blktrace no longer behaves as described" >&2
exit "$status"
