#!/usr/bin/env bash
# `ioping FILE` measures the page cache of a file that was read before, not the disk: on XFS, and on
# ext4 of Linux 7.3.
#
# ioping reads 4 KiB, and drops them from the cache by posix_fadvise (POSIX_FADV_DONTNEED), so that
# a later read finds the disk again. Linux drops whole folios alone: of a folio that is larger than
# the range, nothing goes, and the call succeeds. A file that was read in order is in folios of up
# to some MiB, on XFS since 5.18, on ext4 in Linux 7.3. So there, a program that gives back what it
# has read piece by piece gives back nothing. `ioping -D` reads past the cache.
#
# Here a file of 8 MiB is read once in order. Then ioping does 100 reads at random places, and then
# each 4 KiB of the file are given back one by one. Reads of the disk, and KiB that stay cached:
#
#               ioping, ext4   ioping, XFS   given back, ext4   given back, XFS
#   Linux 6.12           100             0                  0              8192
#   Linux 7.3         0 to 5        0 to 5               8064              8064
#
# Seen with Linux 6.12.117-1 and 7.3.4-1~bpo13+1, ioping 1.3-1 and xfsprogs 6.13.0-2+deb13u1 of
# Debian 13 (trixie, trixie-backports), over a null_blk device in memory, 2026-11-29. Boots each in
# QEMU without KVM, some 30 seconds per kernel. Needs apt-get on amd64, and 600 MB in the temporary
# folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_trixie ioping=1.3-1 xfsprogs=6.13.0-2+deb13u1 e2fsprogs util-linux-extra=2.41.5-0+deb13u1
for path in usr/bin/{ioping,fincore} usr/sbin/{mkfs.ext4,mkfs.xfs,xfs_io}; do copy_program "$path"; done
mkdir -p "$guest"/{etc,mnt}
cp "$scratch/programs_of_trixie/etc/mke2fs.conf" "$guest/etc/"

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
for name in libcrc32c crc32c_generic xfs configfs; do
    [ -s "/$name.ko" ] && insmod "/$name.ko"
done
insmod /null_blk.ko nr_devices=2 gb=1 queue_mode=2 memory_backed=1
touch /etc/mtab
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/nullb0
mkfs.xfs -q /dev/nullb1

# Empties the cache, and reads the file in order.
read_again() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
    dd if=/mnt/file of=/dev/null bs=128k 2>/dev/null
}
reads() { awk '{ print $1 }' "/sys/block/$1/stat"; }

for place in 'ext4 nullb0' 'xfs nullb1'; do
    set -- $place
    mount -t "$1" "/dev/$2" /mnt
    dd if=/dev/zero of=/mnt/file bs=1M count=8 2>/dev/null
    read_again
    before="$(reads "$2")"
    ioping -q -i 0 -c 100 /mnt/file >/dev/null || echo "seen: failed"
    after="$(reads "$2")"
    read_again
    block=0
    while [ "$block" -lt 2048 ]; do
        echo "fadvise -d $((block * 4096)) 4096"
        block=$((block + 1))
    done >/commands
    xfs_io -r /mnt/file </commands >/dev/null 2>&1
    echo "seen: $1: $((after - before)) reads of the disk, $(($(fincore -n -b -o RES /mnt/file) / 1024)) KiB kept"
done
poweroff -f
INIT
chmod +x "$guest/init"

status=0
for kernel in "${TRIXIE_KERNELS[@]}"; do
    rm -f "$guest"/*.ko
    for name in lib/libcrc32c crypto/crc32c_generic fs/xfs/xfs; do module "$kernel" "$name" "${name##*/}.ko"; done
    boot_with_null_blk "$kernel" xfs
    echo "Linux $kernel"
    while read -r place reads _ _ _ _ kept _; do
        echo "$place $reads reads of the disk by ioping, $kept KiB kept"
        case "$kernel $place" in
        6.*ext4:) ((reads >= 90 && kept == 0)) || status=1 ;;
        *) ((reads <= 10 && kept > 8000)) || status=1 ;;
        esac
    done <<<"$seen"
done
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
