#!/usr/bin/env bash
# Records the job files of folders on a kernel of Debian 13 in QEMU without KVM, each twice.
#
#     guest.sh KERNEL PROCESSORS OUT FOLDER...     as root on Debian, with apt-get, cpio and QEMU
#
# KERNEL is the name of a kernel of trixie or trixie-backports, such as 6.12.117+deb13-cloud-amd64
# or 7.3.4+deb13-cloud-amd64, and may end with `=VERSION`. The heads of the job files are as in
# record.sh. The script writes OUT/JOB.SCHEDULER.1 and .2: the text of tracefs, which pack.py and
# recording.py --ftrace read. blktrace is not used, since blktrace 1.2 loses requests with FUA from
# Linux 7.2 on.
#
# Jobs that write through the page cache name no file, but have the line `; place: ` with words of
# `raw` (the device), `ext4` and `xfs`, and `; vm: ` with settings of writeback. Their recordings
# are OUT/JOB.PLACE.SCHEDULER.1 and .2, with the events of `writeback` and `jbd2`, and fio's output
# as JSON in OUT/JOB.PLACE.SCHEDULER.1.json.
#
# Jobs for BFQ have the scheduler `bfq`, and may have a card behind a reader on USB 1.1 instead of
# null_blk: `; disk: sda`. The groups of `cgroup` get the weights of `cgroup_weight`. Their
# recordings are OUT/JOB.bfq.1 and .2, which recording.py --bfq reads; OUT/JOB.bfq.1.queue has the
# attributes of the queue.
#
# Time in the guest passes with its instructions, so that a busy machine does not change a
# recording. PROCESSORS is 1; a job with four queues needs 4. Some 400 MB in the temporary folder.
set -euo pipefail
if (($# < 4)); then
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2
    exit 2
fi
kernel="${1%%=*}" processors="$2" out="$3"
version="${1#"$kernel"}"
jobs=("${@:4}")
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
root="$scratch/root" guest="$scratch/guest"
mkdir -p "$root" "$scratch"/apt/{lists,archives}/partial "$guest"/{bin,dev,etc,jobs,lib64,lib/x86_64-linux-gnu,mnt,proc,sys,tmp}

# Packages of Debian 13, whatever Debian this is, from its own mirror.
mirror="$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)"
for suite in trixie trixie-backports; do
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
done >"$scratch/apt/sources"
debian() {
    apt-get -q -o Dir::Etc::sourcelist="$scratch/apt/sources" -o Dir::Etc::sourceparts=/nonexistent \
        -o Dir::State::lists="$scratch/apt/lists" -o Dir::State::status=/dev/null \
        -o Dir::Cache="$scratch/apt" -o APT::Sandbox::User=root "$@"
}
debian update >"$scratch/log"
# Since 7.2, a kernel and its modules are packages of their own.
if [[ "$kernel" == 6.* ]]; then
    images=("linux-image-$kernel$version")
else
    images=("linux-binary-$kernel$version" "linux-modules-$kernel$version")
fi
(cd "$scratch/apt/archives" && debian download "${images[@]}") >>"$scratch/log"
debian install -y --no-install-recommends --download-only fio=3.39-1 busybox-static e2fsprogs xfsprogs \
    >>"$scratch/log"
for package in "$scratch"/apt/archives/*.deb; do dpkg -x "$package" "$root"; done

cp "$root"/usr/bin/{busybox,fio} "$guest/bin/"
cp -L "$root"/usr/sbin/mkfs.{ext4,xfs} "$guest/bin/"
cp "$root/etc/mke2fs.conf" "$guest/etc/"
touch "$guest/etc/mtab"
libraries="$root/usr/lib/x86_64-linux-gnu"
for program in fio mkfs.ext4 mkfs.xfs; do
    "$root/usr/lib64/ld-linux-x86-64.so.2" --library-path "$libraries:$libraries/ceph" --list "$guest/bin/$program" |
        awk '/=> \// { print $3 }' | xargs cp -L -u -t "$guest/lib/x86_64-linux-gnu/"
done
cp -L "$libraries/ld-linux-x86-64.so.2" "$guest/lib64/"
for module in configfs null_blk mq-deadline kyber-iosched bfq virtio_blk libcrc32c crc32c-cryptoapi xfs \
    usb-common usbcore uhci-hcd scsi_common scsi_mod sd_mod usb-storage; do
    path="$(find "$root/usr/lib/modules/$kernel/kernel" -name "$module.ko.xz")"
    if [[ -n "$path" ]]; then xz -dc "$path" >"$guest/$module.ko"; fi
done
for folder in "${jobs[@]}"; do cp "$folder"/*.fio "$guest/jobs/"; done
cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmp /tmp
for module in virtio_blk configfs mq-deadline kyber-iosched bfq libcrc32c crc32c-cryptoapi xfs; do insmod "/$module.ko"; done 2>/dev/null
mount -t tracefs tracefs /sys/kernel/tracing
mount -t cgroup2 cgroup /sys/fs/cgroup
echo +io >/sys/fs/cgroup/cgroup.subtree_control
# A card behind a reader on USB 1.1, which takes 1,280 bytes a ms.
if grep -q '^; disk: sda' /jobs/*; then
    for module in scsi_common scsi_mod sd_mod usb-common usbcore uhci-hcd usb-storage; do insmod "/$module.ko"; done
    while [ ! -e /sys/block/sda/queue/scheduler ]; do sleep 1; done
fi
cd /sys/kernel/tracing
echo 60000 >buffer_size_kb
mkdir /tmp/out

head_of() { sed -n "s/^; $1: //p" "$2"; }

# make_place PLACE: makes it on the device. Sets the option with which fio finds it.
make_place() {
    place=
    case "$1" in
    raw) place=--filename=/dev/nullb0 ;;
    ext4 | xfs)
        place=--directory=/mnt force=-F
        [ "$1" = ext4 ] || force=-f
        "mkfs.$1" -q "$force" /dev/nullb0 >/dev/null 2>&1
        mount -t "$1" /dev/nullb0 /mnt
        ;;
    esac
}

# set_writeback JOB: sets up Linux's writeback as the job wants it.
set_writeback() {
    sysctl -q -w vm.dirty_background_ratio=10 vm.dirty_ratio=20 \
        vm.dirty_writeback_centisecs=500 vm.dirty_expire_centisecs=3000
    for setting in $(head_of vm "$1"); do sysctl -q -w "vm.$setting"; done
}

# trace_writeback JOB: empties the page cache, and enables the events of writeback.
trace_writeback() {
    if grep -q overwrite=1 "$1"; then fio --create_only=1 "$place" "$1" >/tmp/fio 2>&1; fi
    sync
    sleep 1
    echo 3 >/proc/sys/vm/drop_caches
    for event in start written wait single_inode queue_io pages_written wake_background; do
        [ ! -e "events/writeback/writeback_$event" ] || echo 1 >"events/writeback/writeback_$event/enable"
    done
    for event in balance_dirty_pages global_dirty_state bdi_dirty_ratelimit wbc_writepage; do
        echo 1 >"events/writeback/$event/enable"
    done
    for event in start_commit end_commit commit_flushing submit_inode_data; do
        echo 1 >"events/jbd2/jbd2_$event/enable"
    done
}

# make_groups JOB: makes the groups of a job with their weights, which fio 3.39 refuses for
# cgroup v2 ("cgroup weit doesn't work with cgroup2"). It writes the job to /tmp/job without them.
make_groups() {
    sed -n 's/^cgroup=//p' "$1" | while read -r group; do mkdir -p "/sys/fs/cgroup/$group"; done
    awk -F= '$1 == "cgroup" { group = $2 } $1 == "cgroup_weight" { print group, $2 }' "$1" |
        while read -r group weight; do echo "$weight" >"/sys/fs/cgroup/$group/io.bfq.weight"; done
    sed '/^cgroup_weight=/d' "$1" >/tmp/job
}

# set_queue JOB DISK: sets attributes of the queue of a disk.
set_queue() {
    for attribute in $(head_of queue "$1"); do
        path="/sys/block/$2/queue/${attribute%%=*}"
        # `async_depth` is an attribute of the queue since 7.0.
        [ -e "$path" ] || path="/sys/block/$2/queue/${path##*/}"
        echo "${attribute#*=}" >"$path"
    done
}

# tell_bfq DISK: makes BFQ's own messages part of the trace.
tell_bfq() {
    echo blk >current_tracer
    echo notify >"/sys/block/$1/trace/act_mask"
    echo 1 >"/sys/block/$1/trace/enable"
}

record() {
    echo "recording: $4"
    disk="$(head_of disk "$1")"
    if [ -z "$disk" ]; then
        disk=nullb0
        insmod /null_blk.ko nr_devices=1 $(head_of null_blk "$1")
        # null_blk of 6.12 does not know `rotational`.
        if head_of null_blk "$1" | grep -q rotational=1; then echo 1 >/sys/block/nullb0/queue/rotational; fi
    fi
    echo "$2" >"/sys/block/$disk/queue/scheduler"
    set_queue "$1" "$disk"
    make_place "$3"
    set_writeback "$1"
    [ -z "$3" ] || trace_writeback "$1"
    make_groups "$1"
    IFS=: read -r major minor <"/sys/block/$disk/dev"
    for event in bio_queue bio_backmerge bio_frontmerge getrq split rq_insert rq_issue rq_requeue rq_merge rq_complete; do
        echo "dev == $((major << 20 | minor))" >"events/block/block_$event/filter"
        echo 1 >"events/block/block_$event/enable"
    done
    echo 1 >events/block/block_plug/enable
    echo 1 >events/block/block_unplug/enable
    echo >trace
    [ "$2" != bfq ] || tell_bfq "$disk"
    echo 1 >tracing_on
    output="/tmp/fio"
    [ -z "$3" ] || output="/tmp/out/$4.json"
    fio --output-format=json --output="$output" $place /tmp/job >/tmp/messages 2>&1 || echo "failed: $1 $3"
    # What is left is written when the last file of a device is closed, or after some time.
    [ -z "$3" ] || grep -q -e sync= -e _sync "$1" || sleep 6
    echo 0 >tracing_on
    cat trace >"/tmp/out/$4"
    echo 0 >events/enable
    [ "${place%%=*}" != --directory ] || umount /mnt
    if [ "$2" = bfq ]; then
        grep -h entries-in-buffer trace
        (cd "/sys/block/$disk/queue" && grep . iosched/* rotational nr_requests) >"/tmp/out/$4.queue"
        echo 0 >"/sys/block/$disk/trace/enable"
        echo nop >current_tracer
    fi
    echo none >"/sys/block/$disk/queue/scheduler"
    sed -n 's/^cgroup=//p' "$1" | while read -r group; do rmdir "/sys/fs/cgroup/$group" 2>/dev/null; done
    [ "$disk" != nullb0 ] || rmmod null_blk
}

for turn in 1 2; do
    for job in /jobs/*.fio; do
        name="${job##*/}"
        for scheduler in $(head_of scheduler "$job"); do
            places="$(head_of place "$job")"
            [ -n "$places" ] || record "$job" "$scheduler" "" "${name%.fio}.$scheduler.$turn"
            for place in $places; do
                record "$job" "$scheduler" "$place" "${name%.fio}.$place.$scheduler.$turn"
            done
        done
    done
done
cd /tmp/out
tar cf /tmp/recordings .
dd if=/tmp/recordings of=/dev/vda bs=64k conv=fsync 2>/dev/null
echo "seen: $(stat -c %s /tmp/recordings)"
poweroff -f
INIT
chmod +x "$guest/init"
(cd "$guest" && find . | "$guest/bin/busybox" cpio -o -H newc 2>/dev/null) >"$scratch/initramfs"
image="$root/boot/vmlinuz-$kernel"
[[ -e "$image" ]] || image="$root/usr/lib/modules/$kernel/vmlinuz"
truncate -s 1G "$scratch/disk"
qemu-system-x86_64 -accel tcg -cpu max -icount shift=0,sleep=off -smp "$processors" -m 2048 \
    -nodefaults -display none -serial stdio -no-reboot -kernel "$image" -initrd "$scratch/initramfs" \
    -append 'console=ttyS0 quiet panic=-1' -drive "if=virtio,format=raw,file=$scratch/disk" \
    -device piix3-usb-uhci,id=usb -drive if=none,id=card,driver=null-co,size=4G,read-zeroes=on \
    -device usb-storage,bus=usb.0,drive=card \
    </dev/null >"$scratch/console"
bytes="$(tr -d '\r' <"$scratch/console" | sed -n 's/^.*seen: //p')"
if [[ -z "$bytes" ]] || grep -q 'failed: ' "$scratch/console"; then
    cat "$scratch/console" >&2
    exit 1
fi
mkdir -p "$out"
head -c "$bytes" "$scratch/disk" | tar x -C "$out"
