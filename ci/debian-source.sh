#!/usr/bin/env bash
# ci/debian-source.sh PACKAGE FOLDER: unpacks a Debian package's original source into FOLDER, unless
# it is there already, from the configured package source. Exits with 3 if it is not available.
set -euo pipefail
[[ $# == 2 ]] || { sed -n '2,/^[^#]/s/^# \?//p' "$0" >&2; exit 2; }
[[ ! -d $2 ]] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$(dirname "$2")"
into=$(realpath "$2")
cd "$work"
# shellcheck disable=SC2016
apt-get indextargets --format 'deb-src $(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
    sort -u >sources.list || true
mkdir -p lists/partial unpacked
options=(-q -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$work/lists" -o APT::Sandbox::User=root)
apt-get "${options[@]}" update || true # some package sources have no source packages
apt-get "${options[@]}" source --download-only "$1" || { echo "$1: the source package is not available" >&2; exit 3; }
tar -xf "$1"_*.orig.tar.[gx]z --strip-components=1 -C unpacked
mv unpacked "$into"
