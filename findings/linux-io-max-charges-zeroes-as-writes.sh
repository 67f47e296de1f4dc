#!/usr/bin/env bash
# On Linux 6.1 and 6.12, a limit of `io.max` holds up zeroing that moves no data, but no discard.
#
# The block layer hands a discard and a write of zeroes (BLKZEROOUT, fallocate) to the device as
# commands without data. The limit `wbps` of a cgroup takes a discard for one sector. A write of
# zeroes counts with the whole length of its range, as if the zeroes were sent. So in a container
# that may write 10 MiB/s, zeroing 1 GiB takes 102 s, though the device does it in a moment.
#
# Here the device is a virtio disk of QEMU, whose commands for zeroes and discards make holes in a
# file, under a limit of 10 MiB/s:
#
#   discard of 100 MiB   0 s
#   zeroes of 100 MiB    10 s
#
# Seen with Linux 6.1.176-1 and 6.12.117-1~deb12u1 of Debian 12 (bookworm), 2026-11-29; 7.3.4 of the
# backports of Debian 13 does the same. Boots each in QEMU without KVM, some 20 seconds per kernel.
# Needs apt-get on amd64, and 300 MB in the temporary folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_files tools util-linux=2.38.1-5+deb12u3 libblkid1=2.38.1-5+deb12u3 libc6=2.36-9+deb12u14
cp "$scratch/tools/sbin/blkdiscard" "$guest/"
cp "$scratch"/tools/{usr/,}lib/x86_64-linux-gnu/{libblkid.so.1,libc.so.6} "$guest/lib/x86_64-linux-gnu/" 2>/dev/null || true
cp "$scratch/tools/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" "$guest/lib64/"
truncate -s 1G "$scratch/disk"
QEMU_DEVICES=(-drive "if=none,id=disk,format=raw,file=$scratch/disk,discard=unmap"
    -device "virtio-blk-pci,drive=disk,discard=on,write-zeroes=on")

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
mount -t cgroup2 cgroup /sys/fs/cgroup
for name in virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk; do
    [ -s "/$name.ko" ] && insmod "/$name.ko"
done
echo +io >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/limited
echo "$(cat /sys/block/vda/dev) wbps=10485760" >/sys/fs/cgroup/limited/io.max
echo 0 >/sys/fs/cgroup/limited/cgroup.procs

now() { sed -E 's/^([0-9]+)\.([0-9]).*/\1\2/' /proc/uptime; }
took() {
    before="$(now)"
    /blkdiscard -f "$@" -l 104857600 /dev/vda 2>/dev/null || echo "seen: failed"
    echo $((($(now) - before + 5) / 10))
}
echo "seen: discard of 100 MiB: $(took) s"
echo "seen: zeroes of 100 MiB: $(took -z) s"
poweroff -f
INIT
chmod +x "$guest/init"

prepare() {
    rm -f "$guest"/*.ko
    for name in virtio/virtio{,_ring,_pci_legacy_dev,_pci_modern_dev,_pci} block/virtio_blk; do
        module "$1" "drivers/$name" "${name##*/}.ko"
    done
}

expect_of_each_kernel zeroes $'discard of 100 MiB: 0 s\nzeroes of 100 MiB: 10 s'
