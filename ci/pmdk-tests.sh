#!/usr/bin/env bash
# ci/pmdk-tests.sh SOURCES [TEST...]: builds PMDK's own unit tests of libpmemblk, unchanged, against
# our header and library, and runs them with PMDK's scripts, which compare their output. SOURCES is
# a folder with PMDK 1.12's sources, which are not part of this project; what the tests need of PMDK
# is built there. A TEST is a name such as blk_rw/TEST3; all run by default. Counts what was built
# and what passed, and names each other test with the reason. Fails if a test fails. blk_recovery is
# not run: it looks for PMDK's own structures behind the pointer to a pool, which is none of ours.
# blk_nblock/TEST0 needs 21 TB of space, as with libpmemblk itself, and blk_nblock/TEST1 blocks
# above 1 MiB, so both fail; blk_rw_mt/TEST2, with 30 million operations, does not end within 120 s
# on a disk. Outside CI. It needs the packages libndctl-dev, libdaxctl-dev, pmdk-tools and
# pkg-config, and some GiB of space in TMPDIR. A test has SECONDS_MAX seconds (120).
set -euo pipefail
[[ $# -ge 1 && -d $1/src/test/unittest ]] || { sed -n '2,/^[^#]/s/^# \?//p' "$0" >&2; exit 2; }
src=$(cd "$1/src" && pwd)
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/files" "$work/logs"
"$(dirname "$0")/libpmemblk.sh" "$work"
export EXTRA_CFLAGS=-Wno-error
[[ -e $src/../.version || -e $src/../VERSION ]] || echo 1.12.1 >"$src/../.version"
make_there() { make -s -C "$src/$1" "${@:2}" BUILD_RPMEM=n >"$work/make.log" 2>&1 || { tail -5 "$work/make.log" >&2; exit 1; }; }
make_there . common core libpmem libpmempool
make_there test/unittest
for tool in anonymous_mmap bttcreate cmpmap ctrld ddmap extents fallocate_detect pmemdetect pmemspoil sparsefile; do
    [[ ! -f $src/test/tools/$tool/Makefile ]] || make_there "test/tools/$tool"
done
# The checker is that of the system, and everything uses our library.
ln -sf "$(command -v pmempool)" "$src/tools/pmempool/pmempool"
ln -sf "$work/libpmemblk.so.1" "$src/nondebug/libpmemblk.so.1"
cd "$src/test"
cat >testconfig.sh <<CONFIG
NON_PMEM_FS_DIR=$work/files
PMEM_FS_DIR=$work/files
PMEM_FS_DIR_FORCE_PMEM=1
TM=1
CONFIG
touch envconfig.sh
count=0 built=0
for source in blk_*/blk_*.c; do
    [[ $source != *_win.c ]] || continue # for Windows
    program=${source%.c}
    count=$((count + 1))
    # Some programs read the pool's file with the structures of PMDK's private headers.
    if cc -std=gnu99 -w -I"$work" -I../include -Iunittest -I../common -I../core -I../libpmemblk "$source" -o "$program" \
        unittest/libut.a -L"$work" -lpmemblk -L../nondebug -lpmemcommon -lpmemcore -lpmem -lndctl -ldaxctl -lpthread -ldl -lm \
        2>"$work/cc.log"; then
        built=$((built + 1))
    else
        echo "$program: not built: $(grep -m1 error "$work/cc.log")"
    fi
done
./blk_include/blk_include >"$work/logs/blk_include" 2>&1 || { echo "blk_include: failed"; exit 1; }
[[ $# -gt 0 ]] || set -- $(ls -d blk_*/TEST* | grep -x '.*/TEST[0-9]*')
ran=0 passed=0
for test in "$@"; do
    [[ $test != blk_recovery/* ]] || { echo "$test: not run: it needs the structures of PMDK's pools"; continue; }
    log=$work/logs/${test/\//-}
    for kind in non-pmem any pmem; do # until a kind of file system that the test accepts
        rc=0
        (cd "${test%/*}" && TEST=all FS=$kind BUILD=nondebug CHECK_TYPE=none timeout "${SECONDS_MAX:-120}" bash "./${test#*/}") \
            >"$log" 2>&1 </dev/null || rc=$?
        grep -aq 'SKIP fs-type' "$log" || break
    done
    rm -rf "${work:?}/files/"*
    if grep -aq 'PASS' "$log"; then
        ran=$((ran + 1)) passed=$((passed + 1))
    elif [[ $rc == 0 ]]; then
        echo "$test: not run: $(grep -am1 -o 'SKIP.*' "$log")"
    else
        ran=$((ran + 1))
        [[ $rc != 124 ]] || echo 'too slow' >>"$log"
        echo "$test: FAILED: $(tail -n1 "$log")"
    fi
done
echo "$built of $count programs built, $ran of $# tests run, $passed passed"
((passed == ran))
