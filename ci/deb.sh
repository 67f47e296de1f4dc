#!/usr/bin/env bash
# Makes the Debian package of the program: ci/deb.sh FOLDER
#
# The package has the program, its manual pages, its completions and its systemd units, which are
# not enabled. cargo-deb makes it; `cargo install cargo-deb --locked` installs that. The package is
# in FOLDER.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ $# == 1 ]] || { sed -n '2,/^[^#]/s/^# \?//p' "$0" >&2; exit 2; }

target="${CARGO_TARGET_DIR:-$PWD/target}"
parts="$PWD/target/deb-parts"
cargo build --locked --release -p blockyard-cli
program="$target/release/blockyard"
rm -rf "$parts"
mkdir -p "$parts/man" "$1"
"$program" man >"$parts/man/blockyard.1"
# The commands are the first words of the indented lines that the help lists.
while read -r command; do
    "$program" man "$command" >"$parts/man/blockyard-$command.1"
done < <("$program" --help | awk '/^Commands:/ { on = 1; next } /^[A-Z]/ { on = 0 } on && /^  [a-z]/ && $1 != "help" { print $1 }')
for shell in bash zsh fish; do
    "$program" completions "$shell" >"$parts/blockyard.$shell"
done
# A package has its programs elsewhere than `make install` or a copy by hand.
sed 's#/usr/local/bin/#/usr/bin/#' examples/systemd/blockyard.service >"$parts/blockyard.service"
CARGO_TARGET_DIR="$target" cargo deb --no-build --strip --locked -p blockyard-cli --output "$1"
