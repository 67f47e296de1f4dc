#!/usr/bin/env bash
# A store of 4 KiB through mmap makes Linux write 100 KiB: it marks the whole folio as dirty.
#
# The page cache holds a file in folios, which are larger the further Linux has read ahead. A store
# through mmap marks the whole folio that it falls into as dirty, and msync writes all of it. A
# write of the same 4 KiB by pwrite marks a block alone, where the file system keeps a bit for each
# block: XFS does since Linux 6.6, and before that pwrite has the same effect. ext4 has large folios
# in Linux 7.3. There, a program that maps its file, as some databases do, writes 26 times as much
# after an upgrade of the kernel.
#
# Here a file of 8 MiB is read once in order. Then eight times 4 KiB, 256 KiB apart, are stored and
# synced one by one. 32 KiB are to be written; the device counts, in KiB:
#
#               ext4, mmap   ext4, pwrite   XFS, mmap   XFS, pwrite
#   Linux 6.1           32             32         912           912
#   Linux 6.12          32             32         912            32
#   Linux 7.3          836             32         836            32
#
# Seen with Linux 6.1.176-1 and 6.12.117-1~deb12u1 of Debian 12 (bookworm), and 7.3.4-1~bpo13+1 of
# the backports of Debian 13 (trixie), over a null_blk device in memory, 2026-11-28. Boots each in
# QEMU without KVM, some ten seconds per kernel. Needs apt-get on amd64, and 700 MB in the temporary
# folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_programs e2fsprogs=1.47.0-2+b2 xfsprogs=6.1.0-1
mkdir -p "$guest"/{etc,mnt}
cp "$scratch/programs/etc/mke2fs.conf" "$guest/etc/"
export LD_LIBRARY_PATH="$PROGRAM_LIBRARIES"
for name in mkfs.ext4 mkfs.xfs xfs_io; do
    path="$(find "$scratch/programs" -path "*/sbin/$name")"
    cp -L "$path" "$guest/bin/"
    ldd "$path" | awk '/=> \// { print $3 }' | xargs cp -L -t "$guest/lib/x86_64-linux-gnu/"
done
unset LD_LIBRARY_PATH
cp -L /lib64/ld-linux-x86-64.so.2 "$guest/lib64/"
use_suites trixie-backports
unpack_files kernels linux-{binary,modules}-7.3.4+deb13-cloud-amd64=7.3.4-1~bpo13+1

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
export TERM=dumb
for name in libcrc32c crc32c_generic crc32c-cryptoapi crc16 mbcache jbd2 ext4 xfs configfs; do
    [ -s "/$name.ko" ] && insmod "/$name.ko"
done
insmod /null_blk.ko nr_devices=2 gb=1 memory_backed=1
touch /etc/mtab
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/nullb0
mkfs.xfs -q /dev/nullb1

# Prints the KiB that the device $1 writes for eight blocks of the file $2, each written by the
# command $4 of xfs_io and synced by $5. $3 is a command before the first.
written() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
    dd if="$2" of=/dev/null bs=128k 2>/dev/null
    echo "$3" >/commands
    for block in 0 64 128 192 256 320 384 448; do
        echo "$4 $((block * 4096)) 4096"
        echo "$5"
    done >>/commands
    before="$(awk '{ print $7 }' "/sys/block/$1/stat")"
    xfs_io "$2" </commands >/dev/null 2>&1
    after="$(awk '{ print $7 }' "/sys/block/$1/stat")"
    echo $(((after - before) / 2))
}

for place in 'ext4 nullb0' 'xfs nullb1'; do
    set -- $place
    mount -t "$1" "/dev/$2" /mnt
    dd if=/dev/zero of="/mnt/file" bs=1M count=8 2>/dev/null
    mmap="$(written "$2" /mnt/file 'mmap -rw 0 8m' mwrite 'msync -s 0 8m')"
    pwrite="$(written "$2" /mnt/file print pwrite fdatasync)"
    echo "seen: $1, mmap $mmap KiB, pwrite $pwrite KiB"
done
poweroff -f
INIT
chmod +x "$guest/init"

# $1 is a kernel, $2 and $3 what it writes under ext4 and XFS.
expect() {
    rm -f "$guest"/*.ko
    module "$1" drivers/block/null_blk/null_blk null_blk.ko
    for name in lib/libcrc32c crypto/crc32c_generic crypto/crc32c-cryptoapi lib/crc16 fs/mbcache fs/jbd2/jbd2 fs/ext4/ext4 \
        fs/xfs/xfs fs/configfs/configfs; do
        module "$1" "$name" "${name##*/}.ko"
    done
    boot "$1" xfs
    printf '%s\n' "Linux $1" "$seen"
    [[ "$seen" == "ext4, $2"$'\n'"xfs, $3" ]] || status=1
}

status=0
expect 6.1.0-50-cloud-amd64 'mmap 32 KiB, pwrite 32 KiB' 'mmap 912 KiB, pwrite 912 KiB'
expect 6.12.117+deb12-cloud-amd64 'mmap 32 KiB, pwrite 32 KiB' 'mmap 912 KiB, pwrite 32 KiB'
expect 7.3.4+deb13-cloud-amd64 'mmap 836 KiB, pwrite 32 KiB' 'mmap 836 KiB, pwrite 32 KiB'
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
