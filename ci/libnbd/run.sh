#!/usr/bin/env bash
# Runs programs of libnbd's own test suite as clients of our server: `ci/libnbd/run.sh BLOCKYARD
# FOLDER`. Builds them in FOLDER from Debian's source package, for the installed libnbd; exits with
# 3 if the source is not available.
#
# Only programs whose server is chosen at build or run time are used. Others start nbdkit
# themselves, to test how libnbd handles answers that no correct server gives; `structured-read`
# relies on how qemu-nbd splits an answer into chunks.
set -euo pipefail
[[ $# == 2 ]] || { echo "usage: ci/libnbd/run.sh BLOCKYARD FOLDER" >&2; exit 2; }
blockyard="$(realpath "$1")"
fetch="$(realpath "$(dirname "$0")/../debian-source.sh")"
mkdir -p "$2"
cd "$2"

"$fetch" libnbd source
mkdir -p run tests/pki
cd run
touch config.h

# build NAME SOURCE... FLAG...
build() {
    local name="$1"
    shift
    cc -w -D_GNU_SOURCE -I. -I../source/common/include -I../source/tests "$@" -lnbd -lgnutls -pthread -o "$name"
}

# `interop` looks for certificates here.
pki=../tests/pki
if [[ ! -e $pki/client-cert.pem ]]; then
    openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=ca -days 2 \
        -keyout $pki/ca-key.pem -out $pki/ca-cert.pem 2>/dev/null
    for name in server client; do
        openssl req -newkey rsa:2048 -nodes -subj /CN=localhost \
            -keyout $pki/$name-key.pem -out $pki/$name.csr 2>/dev/null
        openssl x509 -req -in $pki/$name.csr -days 2 -out $pki/$name-cert.pem \
            -CA $pki/ca-cert.pem -CAkey $pki/ca-key.pem -CAcreateserial \
            -extfile <(echo "subjectAltName=DNS:localhost,IP:127.0.0.1") 2>/dev/null
    done
fi

interop=(../source/interop/interop.c ../source/interop/requires.c)
server="-DSERVER=\"$blockyard\""
tls='"--tls-cert", "../tests/pki/server-cert.pem", "--tls-key", "../tests/pki/server-key.pem", '
tls+='"--tls-client-ca", "../tests/pki/ca-cert.pem", "--tls", "require"'
build interop "${interop[@]}" -DNEEDS_TMPFILE=1 '-DEXPORT_NAME=""' "$server" \
    '-DSERVER_PARAMS="serve", TMPFILE, "--nbd", "stdio"'
build interop-tls "${interop[@]}" -DNEEDS_TMPFILE=1 '-DEXPORT_NAME=""' "$server" \
    -DCERTS=1 -DTLS_MODE=LIBNBD_TLS_REQUIRE "-DSERVER_PARAMS=\"serve\", TMPFILE, \"--nbd\", \"stdio\", $tls"
build list-exports ../source/interop/list-exports.c ../source/interop/requires.c "$server" \
    '-DSERVER_PARAMS="serve", "--export", "a=memory:1m", "--export", "b=memory:1m", "--nbd", "stdio"' \
    '-DEXPORTS="a", "b"' '-DDESCRIPTIONS="", ""'
build socket-activation ../source/interop/socket-activation.c "$server" '-DSERVER_PARAMS="serve", tmpfile'
for name in interop interop-tls list-exports socket-activation; do
    echo "libnbd: $name"
    ./$name
done

# The content that the next programs expect: each eight bytes hold their own offset.
python3 -c 'import struct, sys
for at in range(0, 64 << 20, 8): sys.stdout.buffer.write(struct.pack(">Q", at))' >pattern
head -c $((8 << 20)) pattern >small-pattern
for of in aio-parallel:pattern aio-parallel-load:memory:64m synch-parallel:small-pattern; do
    name="${of%%:*}"
    echo "libnbd: $name"
    build "$name" "../source/tests/$name.c"
    rm -f socket
    "$blockyard" serve "${of#*:}" --nbd unix:socket &
    while [[ ! -S socket ]]; do
        kill -0 $! # fails if the server has exited
        sleep 0.1
    done
    ./"$name" socket
    kill $!
    wait $!
done
