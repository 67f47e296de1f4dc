#!/usr/bin/env bash
# ddrescue 1.27 and 1.29 sync the map of what they have rescued while it is empty.
#
# The map is what a rescue goes on from after a crash. ddrescue truncates the file, calls fsync, and
# only then is the text written that it had in a buffer: what is on the disk for certain is the
# truncation. Of a map of more than 4 KiB, the last part alone is missing. The copy `map.bak` does
# not help, since it is that same file under another name, and it is not synced either. So a machine
# that loses power, as one with a failing disk may, can be left without a map of days of work,
# though the rescued data was synced before. `sync` from time to time helps, and so do copies of the
# map.
#
# Here 4 MiB are copied in 8 s, and the map is to be synced every 5 s. The calls for one save:
#
#   fsync(copy)
#   openat("map", O_WRONLY|O_CREAT|O_TRUNC, 0666)
#   fsync(map)
#   write(map, "# Mapfile. Created by GNU ddresc"..., 458)
#   fsync(copy)
#   rename("map", "map.bak")
#   openat("map", O_WRONLY|O_CREAT|O_TRUNC, 0666)
#
# Seen with gddrescue 1.27-1 of Debian 12 (bookworm), 2026-11-29; 1.29 of Debian 13 does the same.
# Needs apt-get on amd64. Ten seconds. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
unpack_programs gddrescue=1.27-1 strace=6.1-0.1

cd "$scratch"
head -c 4M /dev/urandom >disk
program strace -f -y -o calls -e trace=fsync,fdatasync,write \
    "$scratch/programs/usr/bin/ddrescue" --quiet --cluster-size=1 --max-read-rate=512Ki --mapfile-interval=1,5 disk copy map
cmp disk copy

# Counts how often the map is written before it is synced, and how often after it, and syncs of the
# copy with data behind them. Each save opens the map anew, and truncates it.
seen="$(awk '/ write\(.*\/map>/ { after += synced; writes++; synced = 0 } /sync\(.*\/map>/ { synced = 1; syncs++ }
    END { print writes, syncs, after }' calls)"
read -r writes syncs after <<<"$seen"
echo "the map was saved $writes times and synced $syncs times, $after of these before its text was written"
if ((syncs < 2 || after != syncs)); then
    echo "ddrescue no longer behaves as described" >&2
    exit 1
fi
