#!/bin/bash
# What the memory model of Armv8 allows of the shapes that the engine rests on (docs/arm64.md): each file is read by herd7, the
# simulator of the model's authors (https://github.com/herd/herdtools7, 7.57 or later), and must end as its name says: never-* never,
# sometimes-*, in which an error is planted, sometimes.
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../ccl/internal/ordered/testdata/armv8"
command -v herd7 >/dev/null || { echo "herd: NOT RUN: no herd7 here (opam install herdtools7)"; exit 0; }
bad=0
for file in *.litmus; do
	name=${file%.litmus}
	found=$(herd7 "$file" | awk '$1 == "Observation" { print tolower($3) }')
	echo "$name: ${found:-no answer}"
	[ "$found" = "${name%%-*}" ] || bad=1
done
exit $bad
