#!/usr/bin/env bash
# On f2fs of Linux 6.12, random writes to a file are random writes to the disk, too.
#
# f2fs writes in a log, and is chosen for cards and cheap flash, since they are slow at random
# writes. But it overwrites a block where the block is, if it finds that cheaper: always for direct
# writes, for small writes that are synced, and for all writes on a small disk. So a benchmark with
# `direct=1`, or a database that syncs each page, measures random writes as on ext4. `mode=lfs`
# appends whatever comes, and writes one block of its own for each sync.
#
# Here fio overwrites 200 random blocks of 4 KiB of a file that has been laid out. Writes that the
# disk gets, and those among them that begin where the one before has ended:
#
#                           direct   fdatasync each   fsync at the end
#   4 GiB                   200, 0           199, 0             194, 0
#   32 GiB                  200, 0           199, 0               8, 6
#   32 GiB, mode=lfs      200, 199           398, 0               8, 6
#
# Seen with Linux 6.12.117-1, f2fs-tools 1.16.0-1.1+b1 and fio 3.39-1 of Debian 13 (trixie),
# 2026-11-29. Boots the kernel in QEMU without KVM, where time passes with instructions, one minute.
# Needs apt-get on amd64, and 1.2 GB in the temporary folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

# The kernels for clouds have no f2fs.
kernel=6.12.117+deb13-amd64
unpack_trixie fio=3.39-1 f2fs-tools=1.16.0-1.1+b1
unpack_files kernels "linux-image-$kernel=6.12.117-1"
for path in usr/bin/fio usr/sbin/mkfs.f2fs; do copy_program "$path"; done
QEMU_DEVICES=(-icount 'shift=0,sleep=off' -m 1024)

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
mount -t tracefs trace /sys/kernel/tracing
for name in configfs lz4_compress lz4hc_compress crc32-pclmul crc32_generic f2fs; do
    [ -s "/$name.ko" ] && insmod "/$name.ko"
done
echo 1 >/sys/kernel/tracing/events/block/block_rq_issue/enable
# Prints the writes of 200 random blocks with the options $@ of fio.
writes() {
    sync
    echo >/sys/kernel/tracing/trace
    fio --name=job --filename=/disk/file --ioengine=psync --rw=randwrite --bs=4k --size=32m --number_ios=200 --overwrite=1 \
        --output=/tmp/out "$@" || echo "seen: failed"
    awk '/block_rq_issue: .* W[A-Z]* [1-9]/ {
            for (word = 1; $word != "+"; word++);
            writes++
            in_order += $(word - 1) == next_sector
            next_sector = $(word - 1) + $(word + 1)
        } END { print writes, in_order + 0 }' /sys/kernel/tracing/trace
}
for disk in '4 adaptive' '32 adaptive' '32 lfs'; do
    insmod /null_blk.ko nr_devices=1 gb="${disk% *}" queue_mode=2 submit_queues=1 memory_backed=1 cache_size=16
    mkfs.f2fs -q /dev/nullb0 >/tmp/out
    mount -t f2fs -o mode="${disk#* }" /dev/nullb0 /disk
    dd if=/dev/zero of=/disk/file bs=1M count=32 conv=fsync 2>/dev/null
    echo "seen: ${disk% *} GiB, mode=${disk#* }: $(writes --direct=1), $(writes --fdatasync=1), $(writes --end_fsync=1)"
    umount /disk
    rmmod null_blk
done
poweroff -f
INIT
chmod +x "$guest/init"

for path in lib/lz4/lz4_compress lib/lz4/lz4hc_compress arch/x86/crypto/crc32-pclmul crypto/crc32_generic fs/f2fs/f2fs; do
    module "$kernel" "$path" "${path##*/}.ko"
done
boot_with_null_blk "$kernel" '32 GiB, mode=lfs'
printf '%s\n' "Linux $kernel: writes, and those in order: direct, with fdatasync each, with fsync at the end" "$seen"
status=0
while IFS=':, ' read -r size _ mode direct direct_in_order synced synced_in_order late _; do
    ((synced >= 190 && synced_in_order < 20)) || status=1
    if [[ "$mode" == mode=lfs ]]; then
        ((direct_in_order > 180 && synced > 380 && late < 40)) || status=1
    else
        ((direct >= 190 && direct_in_order < 20)) || status=1
        if ((size == 4)); then ((late > 150)) || status=1; else ((late < 40)) || status=1; fi
    fi
done <<<"$seen"
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
