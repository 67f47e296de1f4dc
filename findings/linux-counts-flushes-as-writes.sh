#!/usr/bin/env bash
# On Linux, iostat shows 199 writes of 2 KiB for 100 writes of 4 KiB with fdatasync between them.
#
# iostat has a column for flushes, f/s. But a flush that a file system or a program asks for is also
# an empty write to the block layer, and counts in the fifth field of /sys/block/*/stat when it has
# ended. So syncs double w/s and halve wareq-sz, and w_await is the mean of writes and flushes. A
# device of dm counts the empty writes, but no flush: its f/s is 0 whatever happens.
#
# Here fio does 100 direct writes of 4 KiB, with fdatasync between them or none, to a null_blk
# device with a cache, through a linear device of dm. Writes, flushes, KiB per write of iostat:
#
#   no fdatasync         disk 100, 0, 4.00      dm 100, 0, 4.00
#   fdatasync            disk 199, 99, 2.01     dm 199, 0, 2.01
#
# Seen with Linux 6.12.117-1 and 7.3.4-1~bpo13+1, sysstat 12.7.5-2, dmsetup 1.02.205-2 and fio
# 3.39-1 of Debian 13 (trixie, trixie-backports), 2026-11-29. Boots each in QEMU without KVM, some
# 20 seconds per kernel. Needs apt-get on amd64, and 600 MB in the temporary folder. Fails if this
# changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_trixie fio=3.39-1 dmsetup=2:1.02.205-2 sysstat=12.7.5-2
for path in usr/bin/{fio,iostat} usr/sbin/dmsetup; do copy_program "$path"; done

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
for name in configfs dm-mod; do
    [ -s "/$name.ko" ] && insmod "/$name.ko"
done

# Prints writes and flushes of the device $1 since it was made, and iostat's mean size of a write.
counts() {
    size="$(iostat -x "$1" | awk -v disk="$1" '$1 == "Device" { for (f = 1; f <= NF; f++) if ($f == "wareq-sz") column = f }
        $1 == disk { print $column }')"
    echo "$1 $(awk '{ print $5, $16 }' "/sys/block/$1/stat") $size"
}
for sync in 0 1; do
    insmod /null_blk.ko nr_devices=1 gb=1 queue_mode=2 submit_queues=1 cache_size=16 memory_backed=1
    echo "0 2097152 linear /dev/nullb0 0" | dmsetup create --noudevsync above
    fio --name=job --filename=/dev/dm-0 --ioengine=psync --direct=1 --rw=write --bs=4k --size=400k --fdatasync="$sync" \
        --output=/tmp/out || echo "seen: failed"
    echo "seen: fdatasync=$sync: $(counts nullb0) $(counts dm-0)"
    dmsetup remove --noudevsync above
    rmmod null_blk
done
poweroff -f
INIT
chmod +x "$guest/init"

status=0
for kernel in "${TRIXIE_KERNELS[@]}"; do
    rm -f "$guest"/*.ko
    module "$kernel" drivers/md/dm-mod dm-mod.ko
    boot_with_null_blk "$kernel" fdatasync=1
    printf '%s\n' "Linux $kernel: writes, flushes and KiB per write" "$seen"
    [[ "$seen" == 'fdatasync=0: nullb0 100 0 4.00 dm-0 100 0 4.00
fdatasync=1: nullb0 199 99 2.01 dm-0 199 0 2.01' ]] || status=1
done
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
