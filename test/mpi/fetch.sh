#!/bin/bash
# fetch.sh: the pinned wheels of MPICH, Intel MPI and Open MPI, unpacked into the cache, where
# `go test -tags mpi ./test/mpi` finds them. Needs python3 and pip.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=${GOCCL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goccl}/mpi
mkdir -p "$cache"
cd "$cache"
while read -r name version sum; do
	[ -e "$name-$version/ready" ] && continue
	rm -rf "$name-$version"
	pip download -q --no-deps --only-binary :all: -d . "$name==$version"
	wheel=$(ls "$name-$version"-*.whl)
	echo "$sum  $wheel" | sha256sum -c --quiet
	python3 -m zipfile -e "$wheel" "$name-$version"
	chmod +x "$name-$version/$name-$version".data/data/bin/*
	rm "$wheel"
	touch "$name-$version/ready"
done <"$here/wheels"
