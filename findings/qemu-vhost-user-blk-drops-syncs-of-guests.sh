#!/usr/bin/env bash
# In a guest whose disk is qemu-storage-daemon's vhost-user-blk, fdatasync syncs nothing.
#
# The daemon announces flushes, and a cache mode that the guest can change. But the mode that it
# shows is 0, "write through", while its image is written through the page cache of the host, and
# nothing syncs it after a write. So Linux takes the disk for one without a cache, and ends a sync
# without asking the disk. When the host fails, the guest loses what it had synced. After
# `echo 'write back' >/sys/block/vda/cache_type` in the guest, each sync arrives.
#
# Here a guest does 100 direct writes of 4 KiB with fdatasync behind each, once as the disk comes
# and once with its cache mode changed. The daemon's calls of pwrite and fdatasync:
#
#   write through    100, 0
#   write back       100, 100
#
# Seen with qemu-storage-daemon 7.2.22 of Debian 12 (bookworm), and Linux 7.3.4-1~bpo13+1 and fio
# 3.39-1 of Debian 13 (trixie, trixie-backports), 2026-11-29; also seen once with the daemon of QEMU
# 11.1.3, which this script does not run. Boots the kernel in QEMU without KVM, half a minute. Needs
# apt-get on amd64, and 600 MB in the temporary folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_programs strace=6.1-0.1
unpack_trixie fio=3.39-1
copy_program usr/bin/fio

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
for name in virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk; do
    [ -s "/$name.ko" ] && insmod "/$name.ko"
done
# $1 is where the writes begin.
write_and_sync() {
    fio --name=job --filename=/dev/vda --offset="$1" --ioengine=psync --direct=1 --rw=write --bs=4k --size=400k \
        --fdatasync=1 --output=/tmp/out || echo "seen: failed"
}
echo "seen: the disk comes with $(cat /sys/block/vda/cache_type)"
write_and_sync 0
echo 'write back' >/sys/block/vda/cache_type
write_and_sync 1m
echo "seen: and was changed to $(cat /sys/block/vda/cache_type)"
poweroff -f
INIT
chmod +x "$guest/init"

truncate -s 64M "$scratch/disk"
trap 'kill "$(<"$scratch/pid")" || true; rm -rf "$scratch"' EXIT
program strace -f -o "$scratch/calls" -e trace=pwrite64,pwritev,fdatasync \
    "$scratch/programs/usr/bin/qemu-storage-daemon" --blockdev "driver=file,node-name=disk,filename=$scratch/disk" \
    --export "type=vhost-user-blk,id=export,node-name=disk,addr.type=unix,addr.path=$scratch/socket,writable=on" \
    --pidfile "$scratch/pid" >"$scratch/messages" 2>&1 &
for ((tenth = 0; tenth < 300; tenth++)); do
    [[ ! -S "$scratch/socket" ]] || break
    sleep 0.1
done
[[ -S "$scratch/socket" ]] || { cat "$scratch/messages" >&2; exit 1; }
QEMU_DEVICES=(-object memory-backend-memfd,id=memory,size=512M,share=on -machine memory-backend=memory
    -chardev "socket,id=socket,path=$scratch/socket" -device vhost-user-blk-pci,chardev=socket)
kernel="${TRIXIE_KERNELS[1]}"
module "$kernel" drivers/block/virtio_blk virtio_blk.ko
boot "$kernel" 'and was changed'
kill "$(<"$scratch/pid")"
wait
trap 'rm -rf "$scratch"' EXIT

# Prints the calls of pwrite, and those of fdatasync, of the first and the last hundred writes.
calls="$(awk '/ pwrite/ { writes++ } / fdatasync\(/ { syncs[writes > 100]++ }
    END { printf "%d writes, syncs %d behind the first hundred, %d behind the others\n", writes, syncs[0], syncs[1] }' "$scratch/calls")"
printf '%s\n' "Linux $kernel" "$seen" "qemu-storage-daemon: $calls"
if [[ "$seen" != $'the disk comes with write through\nand was changed to write back' ||
    "$calls" != '200 writes, syncs 0 behind the first hundred, 100 behind the others' ]]; then
    echo "QEMU no longer behaves as described" >&2
    exit 1
fi
