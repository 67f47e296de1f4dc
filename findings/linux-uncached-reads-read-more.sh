#!/usr/bin/env bash
# On Linux 7.3, a sequential read with RWF_DONTCACHE reads 44 % more from the disk than the same
# read through the cache.
#
# Such a read takes its pages from the page cache afterwards. Read-ahead has put several of them
# into one large folio, and the folio goes when its first part has been read. The rest of it is
# then absent, and is read once more, in smaller pieces.
#
# Here a job reads a file of 512 KiB on ext4, 1024 sectors, 16 KiB at a time. Sectors, and the bios
# that asked for them:
#
#   pvsync2               1024 sectors in  6 bios
#   pvsync2, uncached=1   1472 sectors in 18 bios, among them 192 sectors at 524480, and then 32 at
#                         524512, 64 at 524576 and 32 at 524640, which are parts of these
#
# Seen with Linux 7.3.4-1~bpo13+1 and fio 3.39-1 of Debian 13 (trixie, trixie-backports),
# 2026-11-28. Boots the kernel in QEMU without KVM, where time passes with instructions. Needs
# apt-get on amd64 as root, QEMU and cpio, and 400 MB in the temporary folder. One minute. Fails if
# this changes.
set -euo pipefail
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/jobs"
for uncached in 0 1; do
    cat >"$scratch/jobs/uncached$uncached.fio" <<JOB
; null_blk: gb=1 queue_mode=2 memory_backed=1 irqmode=2 completion_nsec=100000 hw_queue_depth=64 submit_queues=1 cache_size=16
; scheduler: none
; place: ext4
[j]
ioengine=pvsync2
rw=read
bs=16k
size=512k
uncached=$uncached
JOB
done
kernel=7.3.4+deb13-cloud-amd64=7.3.4-1~bpo13+1
echo "Linux ${kernel#*=}"
"$(dirname "${BASH_SOURCE[0]}")/../ci/oracle/guest.sh" "$kernel" 1 "$scratch/out" "$scratch/jobs"

# Prints the sectors and the bios of the reads of data in recording $1, without those of metadata.
reads() {
    sed -n 's/.*block_bio_queue: [0-9,]* RA\{0,1\} \([0-9]*\) + \([0-9]*\) .*/\2/p' "$1" |
        awk '{ sectors += $1 } END { print sectors + 0, NR }'
}
status=0
for uncached in 0 1; do
    read -r sectors bios <<<"$(reads "$scratch/out/uncached$uncached.ext4.none.1")"
    echo "uncached=$uncached: $sectors sectors in $bios bios"
    if ((uncached)); then ((sectors > 1200)) || status=1; else ((sectors <= 1088)) || status=1; fi
done
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
