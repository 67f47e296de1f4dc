#!/usr/bin/env bash
# Linux's NBD device breaks the limit of its server: a server that takes at most 64 KiB at a time
# fails each direct read of 1 MiB.
#
# An NBD server can announce the longest request that it takes. nbd-client takes no notice, and the
# kernel's device sends up to `max_sectors_kb`, which is 4096. So a server with a limit looks well,
# since most requests fit, and then a backup or a database gets EIO. The attribute can be set by
# hand.
#
# Here nbdkit announces that it takes 64 KiB at most, and holds its clients to that. Direct reads:
#
#   64 KiB                       ok
#   1 MiB                        EIO
#   1 MiB, max_sectors_kb=64     ok
#
# Seen with Linux 7.3.4-1~bpo13+1, nbd-client 3.26.1-6.1 and nbdkit 1.42.3-1 of Debian 13 (trixie,
# trixie-backports), 2026-11-29. Boots the kernel in QEMU without KVM, half a minute. Needs apt-get
# on amd64, and 600 MB in the temporary folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_trixie nbd-client=1:3.26.1-6.1 nbdkit=1.42.3-1
for path in usr/sbin/nbd-client usr/bin/nbdkit; do copy_program "$path"; done
parts=usr/lib/x86_64-linux-gnu/nbdkit
mkdir -p "$guest/parts"
cp "$scratch/programs_of_trixie/$parts"/{plugins/nbdkit-null-plugin,filters/nbdkit-blocksize-policy-filter}.so "$guest/parts/"

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
insmod /nbd.ko
nbdkit -U /tmp/socket --filter=/parts/nbdkit-blocksize-policy-filter.so /parts/nbdkit-null-plugin.so size=64M \
    blocksize-minimum=1 blocksize-preferred=4096 blocksize-maximum=65536 blocksize-error-policy=error
nbd-client -unix /tmp/socket /dev/nbd0 || echo "seen: failed"
queue=/sys/block/nbd0/queue
read_of() { dd if=/dev/nbd0 of=/dev/null bs="$1" count=1 iflag=direct 2>/dev/null && echo "ok" || echo "failed"; }
echo "seen: the device sends up to $(cat $queue/max_sectors_kb) KiB"
for size in 65536 1048576; do echo "seen: $size B: $(read_of $size)"; done
echo 64 >$queue/max_sectors_kb
echo "seen: max_sectors_kb=64, 1048576 B: $(read_of 1048576)"
poweroff -f
INIT
chmod +x "$guest/init"

kernel="${TRIXIE_KERNELS[1]}"
module "$kernel" drivers/block/nbd nbd.ko
boot "$kernel" max_sectors_kb
printf '%s\n' "Linux $kernel" "$seen"
if [[ "$seen" != 'the device sends up to 4096 KiB
65536 B: ok
1048576 B: failed
max_sectors_kb=64, 1048576 B: ok' ]]; then
    echo "Linux or nbd-client no longer behaves as described" >&2
    exit 1
fi
