#!/usr/bin/env bash
# ci/libpmemblk.sh FOLDER: builds libpmemblk.so.1 into FOLDER, with libpmemblk's SONAME and symbol
# version, so that programs which were linked to libpmemblk run with it without a warning. cargo
# cannot make this file by itself: rustc gives its own version script to the linker, which accepts
# only one. FOLDER also gets libpmemblk.so and libpmemblk.h for building programs.
set -euo pipefail
[[ $# == 1 ]] || { sed -n '2,/^[^#]/s/^# \?//p' "$0" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
dir=${PROFILE:-release}; [[ $dir != dev ]] || dir=debug
cargo rustc -q -p blockyard-pmemblk --lib --profile "${PROFILE:-release}" --crate-type staticlib
header=crates/blockyard-pmemblk/include/blockyard_pmemblk.h
names=$(grep -o 'pmemblk_[a-z_]*(' "$header" | tr -d '(' | sort -u)
{
    echo 'LIBPMEMBLK_1.0 { global:'
    sed 's/$/;/' <<<"$names"
    echo 'local: *; };'
} >"$folder/libpmemblk.map"
mapfile -t wanted < <(sed 's/^/-Wl,-u,/' <<<"$names")
cc -shared -o "$folder/libpmemblk.so.1" "${wanted[@]}" "$target/$dir/libblockyard_pmemblk.a" \
    -Wl,-soname,libpmemblk.so.1 -Wl,--version-script="$folder/libpmemblk.map" -Wl,--gc-sections -Wl,-z,defs \
    -lgcc_s -lpthread -ldl -lm -lc
ln -sf libpmemblk.so.1 "$folder/libpmemblk.so"
cp "$header" "$folder/libpmemblk.h"
readelf -dW "$folder/libpmemblk.so.1" | grep -q 'SONAME.*\[libpmemblk.so.1\]'
for name in $names; do
    readelf --dyn-syms -W "$folder/libpmemblk.so.1" | grep -q " $name@@LIBPMEMBLK_1.0\$" ||
        { echo "ci/libpmemblk.sh: $name is missing or has another version" >&2; exit 1; }
done
