#!/usr/bin/env bash
# fio 3.39 with `fdatasync=1 iodepth=4` syncs while the write that the sync is for is in flight.
#
# With libaio and io_uring, and a depth above 1, fio sends a write, and the sync behind it without
# waiting for the write to end. What has not ended when a flush begins is not covered by it. So each
# write is durable only after the sync of a later one, and a disk that loses its cache would lose a
# write that the job has synced. The flush also runs along with its write, so that the job seems to
# sync twice as often as the disk can. With `iodepth=1`, and with psync, the write has ended.
#
# Here the disk takes 1 ms for a write and 1 ms for a flush, and fio does 100 direct writes of 4 KiB
# with fdatasync behind each. Flushes that the disk gets, those that begin during a write, and
# writes a second:
#
#   psync                99    0      349
#   libaio, depth 1      99    0      490
#   libaio, depth 4      99   99      961
#   io_uring, depth 4    75   74    1,285
#
# Seen with Linux 7.3.4-1~bpo13+1 and fio 3.39-1 of Debian 13 (trixie, trixie-backports),
# 2026-11-29; fio 3.33 of Debian 12 makes the same calls with libaio. Boots the kernel in QEMU
# without KVM, where time passes with instructions, half a minute. Needs apt-get on amd64, and 600
# MB in the temporary folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_trixie fio=3.39-1
copy_program usr/bin/fio
QEMU_DEVICES=(-icount 'shift=0,sleep=off')

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
mount -t tracefs trace /sys/kernel/tracing
insmod /configfs.ko
insmod /null_blk.ko nr_devices=1 gb=1 queue_mode=2 submit_queues=1 cache_size=16 memory_backed=1 irqmode=2 completion_nsec=1000000
echo none >/sys/block/nullb0/queue/scheduler
cd /sys/kernel/tracing
for event in issue complete; do echo 1 >events/block/block_rq_$event/enable; done
for job in 'psync 1' 'libaio 1' 'libaio 4' 'io_uring 4'; do
    echo >trace
    fio --name=job --filename=/dev/nullb0 --ioengine="${job% *}" --iodepth="${job#* }" --direct=1 --rw=randwrite --bs=4k \
        --number_ios=100 --size=64m --fdatasync=1 --output-format=terse --output=/tmp/out || echo "seen: failed"
    # A write is `WS` of 4096 bytes, which are 8 sectors, and a flush `FF`.
    flushes="$(awk '/block_rq_issue: .* WS 4096 / { writes++ } /block_rq_complete: .* WS .* \+ 8 / { writes-- }
        /block_rq_issue: .* FF / { flushes++; during += writes > 0 } END { print flushes " flushes, " during + 0 " during a write" }' trace)"
    echo "seen: ${job% *}, depth ${job#* }: $flushes, $(cut -d';' -f49 /tmp/out) writes a second"
done
poweroff -f
INIT
chmod +x "$guest/init"

boot_with_null_blk "${TRIXIE_KERNELS[1]}" 'io_uring, depth 4'
printf '%s\n' "Linux ${TRIXIE_KERNELS[1]}" "$seen"
status=0
while read -r engine _ depth flushes _ during _ _ _ writes _; do
    if [[ "$engine$depth" == *4: ]]; then
        ((during > 50 && during >= flushes - 5 && writes > 700)) || status=1
    else
        ((flushes > 90 && during == 0 && writes < 600)) || status=1
    fi
done <<<"$seen"
((status == 0)) || echo "fio no longer behaves as described" >&2
exit "$status"
