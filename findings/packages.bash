# Unpacks pinned packages of Debian 12 below a temporary folder, for the findings that source this
# file.
#
# Sets `scratch`, which is removed at the end. Needs apt-get.

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
APT=(apt-get -q)

# Unpacks programs, and the libraries for them that this machine lacks.
unpack_programs() {
    unpack_with_libraries programs "$@"
    PROGRAM_LIBRARIES="$(find "$scratch/programs" -name '*.so*' -printf '%h\n' | sort -u | paste -sd: -)"
}

# Runs an unpacked program.
program() {
    LD_LIBRARY_PATH="$PROGRAM_LIBRARIES" "$scratch/programs/usr/bin/$1" "${@:2}"
}

# Starts an unpacked program, and goes on. `$!` is its process, which `program &` does not give.
start_program() {
    LD_LIBRARY_PATH="$PROGRAM_LIBRARIES" "$scratch/programs/usr/bin/$1" "${@:2}" &
}

# Unpacks these packages in the folder $1, and those that they depend on and this machine lacks.
unpack_with_libraries() {
    unpack "$1" install -y --no-install-recommends --download-only --reinstall \
        -o "Dir::Cache::archives=$scratch/packages" "${@:2}"
}

# Unpacks these packages alone in the folder $1.
unpack_files() {
    unpack "$1" download "${@:2}"
}

# Unpacks in the folder $1 what apt-get downloads with the other arguments.
unpack() {
    rm -rf "$scratch/packages"
    mkdir -p "$scratch/packages/partial" "$scratch/$1"
    if ! (cd "$scratch/packages" && "${APT[@]}" "${@:2}") >"$scratch/apt.log" 2>&1; then
        cat "$scratch/apt.log" >&2
        echo "these packages cannot be had here: the findings need Debian 12" >&2
        exit 2
    fi
    for package in "$scratch"/packages/*.deb; do
        dpkg -x "$package" "$scratch/$1"
    done
}

# From now on, takes packages of the suites $@ of Debian, from the mirror of this machine's own.
use_suites() {
    local suite mirror
    mirror="$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)"
    mkdir -p "$scratch"/suites/{lists,archives}/partial
    for suite in "$@"; do
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
    done >"$scratch/suites/sources"
    APT=(apt-get -q -o "Dir::Etc::sourcelist=$scratch/suites/sources" -o Dir::Etc::sourceparts=/nonexistent
        -o "Dir::State::lists=$scratch/suites/lists" -o Dir::State::status=/dev/null
        -o "Dir::Cache=$scratch/suites" -o APT::Sandbox::User=root)
    "${APT[@]}" update >"$scratch/apt.log"
}
