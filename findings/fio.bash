# Unpacks a pinned fio of Debian 12, for the findings that source this file.
#
# Defines `fio`, which runs that fio, and all of `packages.bash`.
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"

FIO_VERSION=3.33-3
unpack_programs "fio=$FIO_VERSION"

fio() {
    program fio "$@"
}
