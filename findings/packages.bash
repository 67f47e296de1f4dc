# Unpacks pinned packages of Debian 12 below a temporary folder, for the findings that source this
# file.
#
# Sets `scratch`, which is removed at the end. Needs apt-get.

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

# Unpacks programs, and the libraries for them that this machine lacks.
unpack_programs() {
    unpack programs install -y --no-install-recommends --download-only --reinstall \
        -o "Dir::Cache::archives=$scratch/packages" "$@"
    PROGRAM_LIBRARIES="$(find "$scratch/programs" -name '*.so*' -printf '%h\n' | sort -u | paste -sd: -)"
}

# Runs an unpacked program.
program() {
    LD_LIBRARY_PATH="$PROGRAM_LIBRARIES" "$scratch/programs/usr/bin/$1" "${@:2}"
}

# Unpacks these packages alone in the folder $1.
unpack_files() {
    unpack "$1" download "${@:2}"
}

# Unpacks in the folder $1 what apt-get downloads with the other arguments.
unpack() {
    rm -rf "$scratch/packages"
    mkdir -p "$scratch/packages/partial" "$scratch/$1"
    if ! (cd "$scratch/packages" && apt-get -q "${@:2}") >"$scratch/apt.log" 2>&1; then
        cat "$scratch/apt.log" >&2
        echo "these packages cannot be had here: the findings need Debian 12" >&2
        exit 2
    fi
    for package in "$scratch"/packages/*.deb; do
        dpkg -x "$package" "$scratch/$1"
    done
}
