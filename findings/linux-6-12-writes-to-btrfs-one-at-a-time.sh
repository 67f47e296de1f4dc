#!/usr/bin/env bash
# On btrfs of Linux 6.12.117, fio has one write in flight whatever its `iodepth`.
#
# A direct write to a file of btrfs that has checksums is no longer direct there: it goes through
# the page cache and has been written when io_submit returns, with libaio as with io_uring. So a
# benchmark of depth 32 measures depth 1, and a program that was fast under 6.1 has a twentieth of
# its writes. fio shows the depth as 32, and 7.3 writes in parallel again. Reads are not concerned,
# and neither is a file without checksums (`nodatacow`, `nodatasum`).
#
# Here the disk takes 4 ms for an I/O, however many there are, and fio writes and reads 4 KiB at
# random with 32 in flight for one second. IOPS:
#
#   Linux                      6.1   6.12    7.3
#   writes                   5,339    242  4,895
#   writes with nodatacow    7,811  7,823  7,851
#   reads                    7,902  7,895  6,905
#
# Seen with Linux 6.1.176-1 of Debian 12 (bookworm), and 6.12.117-1 and 7.3.4-1~bpo13+1, btrfs-progs
# 6.14-1 and fio 3.39-1 of Debian 13 (trixie, trixie-backports), 2026-11-29. Boots each in QEMU
# without KVM, where time passes with instructions, up to a minute per kernel. Needs apt-get on
# amd64, and 600 MB in the temporary folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_trixie fio=3.39-1 btrfs-progs=6.14-1
for path in usr/bin/fio usr/sbin/mkfs.btrfs; do copy_program "$path"; done
QEMU_DEVICES=(-icount 'shift=0,sleep=off')

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
for name in configfs crc32c-intel libcrc32c zstd_compress xor raid6_pq blake2b_generic libblake2b btrfs; do
    [ -s "/$name.ko" ] && insmod "/$name.ko"
done
insmod /null_blk.ko nr_devices=1 gb=1 queue_mode=2 submit_queues=1 memory_backed=1 irqmode=2 completion_nsec=4000000
echo none >/sys/block/nullb0/queue/scheduler
mkfs.btrfs -q /dev/nullb0
# $1 is a file that has been laid out, $2 what to do with it.
iops() {
    fio --name=job --filename="$1" --size=8m --ioengine=libaio --iodepth=32 --direct=1 --rw="$2" --bs=4k --runtime=1 \
        --time_based --output-format=terse --output=/tmp/out || echo "seen: failed"
    awk -F';' '{ print $8 + $49 }' /tmp/out
}
for options in datasum nodatacow; do
    mount -t btrfs -o "$options" /dev/nullb0 /disk
    dd if=/dev/zero of="/disk/$options" bs=1M count=8 conv=fsync 2>/dev/null
    echo "seen: $options: $(iops "/disk/$options" randwrite) writes, $(iops "/disk/$options" randread) reads"
    umount /disk
done
poweroff -f
INIT
chmod +x "$guest/init"

status=0
# Fails unless the kernel $1 has from $2 to $3 IOPS of writes with checksums.
expect() {
    rm -f "$guest"/*.ko
    for path in arch/x86/crypto/crc32c-intel lib/libcrc32c lib/zstd/zstd_compress lib/raid6/raid6_pq crypto/xor \
        lib/raid/xor/xor lib/raid/raid6/raid6_pq crypto/blake2b_generic lib/crypto/libblake2b fs/btrfs/btrfs; do
        module "$1" "$path" "${path##*/}.ko"
    done
    boot_with_null_blk "$1" nodatacow
    printf '%s\n' "Linux $1: IOPS" "$seen"
    read -r writes reads nodatacow _ <<<"$(sed 's/.*: \(.*\) writes, \(.*\) reads/\1 \2/' <<<"$seen" | paste -sd' ')"
    ((writes >= $2 && writes <= $3 && reads > 6000 && nodatacow > 6000)) || status=1
}
expect linux-image-6.1.0-50-cloud-amd64 3500 8000
expect "${TRIXIE_KERNELS[0]}" 200 280
expect "${TRIXIE_KERNELS[1]}" 3500 8000
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
