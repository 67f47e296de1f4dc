#!/usr/bin/env bash
# An md array that was made under Linux 7.3 cannot be assembled under 6.1 or 6.12, though mdadm and
# its metadata are the same.
#
# 7.3 keeps the logical block size of an array in its superblock, in bytes that were padding. An
# array that is made under it has that size there, 512 as any other. The older kernels refuse a
# superblock whose padding is not zero: it "does not have a valid v1.2 superblock", and mdadm says
# that the array was assembled "from 0 drives". Neither mentions a version, and `mdadm -E` shows
# nothing unusual. So a rescue system, or the kernel from before the upgrade, does not see the data.
# An array that was made under the older kernel, and then written under 7.3, can go back.
#
# Here mdadm 4.4 makes a RAID 1 under 7.3 and another under 6.12, and 7.3 writes to the second:
#
#   assembled under     6.1   6.12   7.3
#   the array of 7.3    no    no     yes
#   the array of 6.12   yes   yes    yes
#
# Seen with Linux 6.1.176-1 of Debian 12 (bookworm), and 6.12.117-1 and 7.3.4-1~bpo13+1 and mdadm
# 4.4-11+deb13u1 of Debian 13 (trixie, trixie-backports), 2026-11-29. Boots them in QEMU without
# KVM, some ten seconds each time. Needs apt-get on amd64, and 600 MB in the temporary folder. Fails
# if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_trixie mdadm=4.4-11+deb13u1
copy_program usr/sbin/mdadm
for disk in 0 1 2 3; do
    truncate -s 64M "$scratch/disk$disk"
    QEMU_DEVICES+=(-drive "if=virtio,format=raw,file=$scratch/disk$disk")
done

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
for name in virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk md-mod raid1; do
    [ -s "/$name.ko" ] && insmod "/$name.ko"
done
mkdir -p /run/mdadm

make() { mdadm --create /dev/md0 --level=1 --raid-devices=2 --metadata=1.2 --bitmap=none --assume-clean --run "$@"; }
assemble() { mdadm --assemble /dev/md0 "$@"; }
fill() { dd if=/dev/zero of=/dev/md0 bs=1M count=8 conv=fsync; }
tried() {
    dmesg -c >/dev/null
    if assemble "$2" "$3" >/dev/null 2>&1; then
        echo "seen: the array of $1: yes"
        mdadm --stop /dev/md0
    else
        echo "seen: the array of $1: no, $(dmesg | grep -c 'does not have a valid v1.2 superblock') disks refused"
    fi
}
case "$(cat /step)" in
make_new) make /dev/vda /dev/vdb && fill && echo "seen: done" ;;
make_old) make /dev/vdc /dev/vdd && fill && echo "seen: done" ;;
write_old) assemble /dev/vdc /dev/vdd && fill && echo "seen: done" ;;
assemble)
    tried 7.3 /dev/vda /dev/vdb
    tried 6.12 /dev/vdc /dev/vdd
    ;;
esac
mdadm --stop /dev/md0
poweroff -f
INIT
chmod +x "$guest/init"

# Boots the kernel $1, which does the step $2 and ends with $3.
do_step() {
    local name
    rm -f "$guest"/*.ko
    for name in virtio/virtio{,_ring,_pci_legacy_dev,_pci_modern_dev,_pci} block/virtio_blk md/md-mod md/raid1; do
        module "$1" "drivers/$name" "${name##*/}.ko"
    done
    echo "$2" >"$guest/step"
    boot "$1" "$3"
}

old=6.1.0-50-cloud-amd64
read -r middle new <<<"${TRIXIE_KERNELS[*]}"
do_step "$new" make_new 'done'
do_step "$middle" make_old 'done'
do_step "$new" write_old 'done'
status=0
# Fails unless, under the kernel $1, assembling the array of 7.3 ends with $2.
expect() {
    do_step "$1" assemble 'the array of 6.12'
    printf '%s\n' "Linux $1" "$seen"
    [[ "$seen" == "the array of 7.3: $2"$'\nthe array of 6.12: yes' ]] || status=1
}
expect "$old" 'no, 2 disks refused'
expect "$middle" 'no, 2 disks refused'
expect "$new" 'yes'
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
