#!/usr/bin/env bash
# Linux's dm-writecache writes 72 KiB to make 4 KiB durable, and flushes the slow disk, too.
#
# The target takes writes to a fast disk and copies them to a slow one later, so that a program that
# syncs need not wait for the slow one. The metadata of the cache is in pieces of 64 KiB: a sync
# behind a write of 4 KiB writes the block, 64 KiB, and 4 KiB that make them valid. And each sync
# also sends a flush to the slow disk, which has been written nothing, and waits for it. So on a log
# that grows by small syncs, the fast disk wears 18 times as much as the log is long. Blocks that
# the cache has already are overwritten in place, and need a flush only.
#
# Here fio does 50 direct writes of 4 KiB at random through the target. Writes, their KiB, and
# flushes of the two disks:
#
#                                       fast disk       slow disk
#   no fdatasync                    50,  200 KiB,  0     0, 0,  0
#   fdatasync, blocks not cached   150, 3600 KiB, 50     0, 0, 49
#   fdatasync, the same blocks      52,  268 KiB, 50     0, 0, 49
#
# Seen with Linux 6.12.117-1 and 7.3.4-1~bpo13+1, dmsetup 1.02.205-2 and fio 3.39-1 of Debian 13
# (trixie, trixie-backports), 2026-11-29. Boots each in QEMU without KVM, some 20 seconds per
# kernel. Needs apt-get on amd64, and 600 MB in the temporary folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_trixie fio=3.39-1 dmsetup=2:1.02.205-2
for path in usr/bin/fio usr/sbin/dmsetup; do copy_program "$path"; done

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
mount -t tracefs trace /sys/kernel/tracing
for name in configfs dm-mod dm-bufio dm-writecache; do
    [ -s "/$name.ko" ] && insmod "/$name.ko"
done
insmod /null_blk.ko nr_devices=2 gb=1 queue_mode=2 submit_queues=1 memory_backed=1 cache_size=16
echo 1 >/sys/kernel/tracing/events/block/block_rq_issue/enable
# Prints what the disk $1 got: writes, KiB and flushes.
got() {
    awk -v disk="$(awk '{ sub(":", ","); print }' /sys/block/$1/dev)" '$0 !~ " " disk " " { next }
        / FF / { flushes++ } / W[A-Z]* [1-9]/ { for (word = 1; $word != disk; word++); writes++; bytes += $(word + 2) }
        END { print writes + 0, bytes / 1024, flushes + 0 }' /sys/kernel/tracing/trace
}
echo "0 1048576 writecache s /dev/nullb1 /dev/nullb0 4096 0" | dmsetup create --noudevsync cached
# $1 names the job, and the others are options of fio.
job() {
    name="$1"
    shift
    echo >/sys/kernel/tracing/trace
    fio --name=job --filename=/dev/dm-0 --ioengine=psync --direct=1 --rw=randwrite --bs=4k --size=64m --number_ios=50 \
        --output=/tmp/out "$@" || echo "seen: failed"
    echo "seen: $name: fast disk $(got nullb0), slow disk $(got nullb1)"
}
job 'no fdatasync'
sync
job 'fdatasync, other blocks' --offset=64m --fdatasync=1
job 'fdatasync, the same blocks' --offset=64m --fdatasync=1
poweroff -f
INIT
chmod +x "$guest/init"

status=0
for kernel in "${TRIXIE_KERNELS[@]}"; do
    rm -f "$guest"/*.ko
    for name in dm-mod dm-bufio dm-writecache; do module "$kernel" "drivers/md/$name" "$name.ko"; done
    boot_with_null_blk "$kernel" 'fdatasync, the same'
    printf '%s\n' "Linux $kernel: writes, KiB and flushes" "$seen"
    read -r none writes kib _ slow_writes flushes <<<"$(sed -nE 's/^no fdatasync.* ([0-9]+) 0, slow.*/\1/p
        s/^fdatasync, other.*fast disk ([0-9]+) ([0-9]+) ([0-9]+), slow disk ([0-9]+) 0 ([0-9]+)/\1 \2 \3 \4 \5/p' <<<"$seen" | paste -sd' ')"
    ((none == 200 && writes > 140 && kib > 3400 && slow_writes == 0 && flushes > 45)) || status=1
done
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
