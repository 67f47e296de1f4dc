# Installs a pinned fio of Debian 12 below a temporary folder, for the findings that source this file.
#
# Sets `scratch`, which is removed at the end, and defines `fio`, which runs that fio. Needs apt-get.

FIO_VERSION=3.33-3
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/packages/partial" "$scratch/root"

# fio and the libraries that this machine lacks.
if ! apt-get install -y -q --no-install-recommends --download-only --reinstall \
    -o "Dir::Cache::archives=$scratch/packages" "fio=$FIO_VERSION" >"$scratch/apt.log" 2>&1; then
    cat "$scratch/apt.log" >&2
    echo "fio $FIO_VERSION cannot be had here: these findings need Debian 12" >&2
    exit 2
fi
for package in "$scratch"/packages/*.deb; do
    dpkg -x "$package" "$scratch/root"
done
FIO_LIBRARIES="$(find "$scratch/root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd: -)"

fio() {
    LD_LIBRARY_PATH="$FIO_LIBRARIES" "$scratch/root/usr/bin/fio" "$@"
}
