#!/bin/bash
# usage: lab.sh [BENCH]
#
# Runs bench under Debian's Hydra and Open MPI as 4 ranks on 2 hosts of test/lab, with its engine mpi
# and, over MPI's bootstrap, with the CPU engine, which must use shared memory inside a host and TCP
# between. BENCH is the command built with -tags mpi; without it, it is built.
set -u
lab=$(cd "$(dirname "$0")/../lab" && pwd)
netlab=$lab/netlab.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_base_warn_component_unused=0
"$lab/need" netlab mpich openmpi || exit 1

tmp=$(mktemp -d -p "${GOCCL_LAB_SHARED:-/var/lib}" goccl-lab.XXXXXX) || exit 1
# shellcheck disable=SC2317 # called by trap
clean() {
	cd /
	[ -z "${up:-}" ] || "$netlab" down # never another's
	rm -rf "$tmp"
}
trap clean EXIT
trap 'exit 130' INT TERM

bench=$tmp/bench # which all hosts see
if [ $# -gt 0 ]; then
	cp "$1" "$bench" || exit 1
else
	(cd "$lab/../.." && CGO_ENABLED=1 go build -tags mpi -o "$bench" ./bench) || exit 1
fi
cd "$tmp" || exit 1
"$netlab" up 2 && up=1 || exit 1

failed=0
# check NAME WANTED COMMAND..: all values right, and WANTED in the output. MPI_Finalize of Debian's MPICH 4.0.2 does not always
# return on two hosts: one rank waits in UCX for the others, which wait in the launcher's barrier. A program of 20 lines in C,
# without goccl, met it in 13 of 180 jobs on a loaded machine; here, where ranks have sent nothing by MPI, it is up to half of
# the jobs. So a job of Hydra's that has done all but end passes, and says so. That jobs end is tested on one host.
check() {
	local name=$1 wanted=$2 status job left=50
	shift 2
	timeout -k 5 "${GOCCL_LAB_LIMIT:-60}" "$netlab" exec 1 "$@" >"$tmp/out" 2>&1 </dev/null &
	job=$!
	# One of Hydra's has 10 seconds to end, once all is done.
	while [[ $name = hydra* ]] && kill -0 $job 2>/dev/null && [ $left -gt 0 ]; do
		! grep -q '^# Collective test concluded' "$tmp/out" || left=$((left - 1))
		sleep 0.2
	done
	[ $left -gt 0 ] || kill $job
	wait $job
	status=$?
	[ $left -gt 0 ] || status=124
	if grep -q '^# Out of bounds values : 0 OK' "$tmp/out" && grep -q '^# Collective test concluded' "$tmp/out" &&
		grep -q 'hosts: 2 ' "$tmp/out" && grep -q "$wanted" "$tmp/out"; then
		case $status,$name in
		0,*) echo "ok    $name" && return ;;
		124,hydra*) echo "ok    $name: all is right, but MPICH's MPI_Finalize has not returned" && return ;;
		esac
	fi
	echo "FAIL  $name: $*"
	cat "$tmp/out"
	failed=1
}

for backend in mpi cpu; do
	# Three and more ranks of MPICH spin on two cores: few and small calls.
	job=("$bench" -op all -backend "$backend" -e 4K -f 64 -n 2 -w 1)
	wanted="transport: mpi's own"
	[ "$backend" = mpi ] || wanted='transport: shared memory.*TCP'
	check "hydra, $backend" "$wanted" mpiexec.mpich -launcher rsh -launcher-exec "$lab/netlab-rsh" -hosts h1:2,h2:2 -n 4 "${job[@]}"
	check "openmpi, $backend" "$wanted" mpirun.openmpi --mca plm_rsh_agent "$lab/netlab-rsh" --mca btl tcp,self,vader --mca btl_tcp_if_include 10.77.0.0/16 \
		--mca mpi_yield_when_idle 1 --oversubscribe --bind-to none --host h1:2,h2:2 -n 4 "${job[@]}"
done
exit $failed
