#!/usr/bin/env bash
# ci/pmdk-examples.sh SOURCES: builds PMDK's example programs for libpmemblk, unchanged, against our
# header and library, and runs them. SOURCES is a folder with PMDK 1.12's sources, which are not
# part of this project. The example `manpage` has a fixed path, so it runs only where the folder
# /pmem-fs can be made.
set -euo pipefail
[[ $# == 1 && -d $1/src/examples/libpmemblk ]] || { sed -n '2,/^[^#]/s/^# \?//p' "$0" >&2; exit 2; }
examples=$(cd "$1/src/examples" && pwd)
work=$(mktemp -d)
made=
trap 'rm -rf "$work"; [[ -z $made ]] || rm -rf /pmem-fs' EXIT
"$(dirname "$0")/libpmemblk.sh" "$work"
cd "$work"
for program in manpage assetdb/asset_load assetdb/asset_list assetdb/asset_checkout assetdb/asset_checkin; do
    cc -std=gnu99 -D_GNU_SOURCE -Wall -Werror -I. -I"$examples" "$examples/libpmemblk/$program.c" -L. -lpmemblk -o "$(basename "$program")"
done
export LD_LIBRARY_PATH=$work
expect() { # COUNT WORDS: the list of assets has WORDS in COUNT lines
    [[ $(./asset_list assets 2>errors | grep -c "$2") == "$1" && ! -s errors ]] ||
        { echo "ci/pmdk-examples.sh: not $1 times '$2'" >&2; cat errors >&2; exit 1; }
}
truncate -s 64M assets
printf 'one\ntwo\nthree\n' >list
./asset_load assets list
expect 3 'State: Free'
./asset_checkout assets 1 somebody
expect 1 'User: somebody'
expect 2 'State: Free'
./asset_checkin assets 1
expect 3 'State: Free'
if [[ ! -e /pmem-fs ]] && mkdir /pmem-fs 2>/dev/null; then made=1; fi
if [[ -n $made ]]; then
    ./manpage && ./manpage # creates its pool, then opens it
    echo "5 of 5 programs built, 5 run"
else
    echo "5 of 5 programs built, 4 run: /pmem-fs cannot be made, or exists"
fi
