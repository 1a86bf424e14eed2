#!/bin/bash
# usage: peers.sh [FLAG..]
#
# Compares goccl with Open MPI on two hosts of netlab, two ranks each: memory inside a host, TCP between. FLAGs are those of
# test/peers, such as -rounds 3 or -max 1048576.
set -u
lab=$(cd "$(dirname "$0")" && pwd)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_base_warn_component_unused=0
"$lab/need" netlab openmpi || exit 1

tmp=$(mktemp -d -p "${GOCCL_LAB_SHARED:-/var/lib}" goccl-lab.XXXXXX) || exit 1 # which all hosts see
# shellcheck disable=SC2317 # called by trap
clean() {
	cd /
	[ -z "${up:-}" ] || "$lab/netlab.sh" down # never another's
	rm -rf "$tmp"
}
trap clean EXIT
trap 'exit 130' INT TERM

cd "$lab/../.." && CGO_ENABLED=0 go build -o "$tmp/peers" ./test/peers || exit 1
"$lab/netlab.sh" up 2 && up=1 || exit 1
TMPDIR=$tmp GOCCL_PEERS_LAB=$lab "$tmp/peers" -case netlab-2x2 "$@"
