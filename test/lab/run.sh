#!/bin/bash
# usage: run.sh [BENCH [CASE..]]
#
# Runs bench as 4 ranks on 2 hosts under every launcher there is: each of bench's operations must
# find 4 ranks on 2 hosts and no wrong value. BENCH is the built command; without it, it is built.
# CASE names some of the cases: hydra pmi2 srun pmix slurm-hydra pals-aurora pals-polaris torchrun
# openmpi root store. GOCCL_LAB_LIMIT=90: seconds for a case.
set -u

lab=$(cd "$(dirname "$0")" && pwd)
netlab=$lab/netlab.sh
limit=${GOCCL_LAB_LIMIT:-90}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

"$lab/need" netlab slurm pmix mpich openmpi pals || exit 1

tmp=$(mktemp -d -t goccl-lab.XXXXXX) || exit 1
slurm=''
clean() {
	[ -z "$slurm" ] || "$lab/slurm-down.sh" "$slurm"
	"$netlab" down
	rm -rf "$tmp"
}
trap clean EXIT
trap 'exit 130' INT TERM

bench=${1:-}
[ $# -eq 0 ] || shift
if [ -z "$bench" ]; then
	bench=$tmp/bench
	(cd "$lab/../.." && CGO_ENABLED=0 go build -o "$bench" ./bench) || exit 1
fi
bench=$(readlink -f "$bench")
wanted=" $* "
job=("$bench" -op all -e 64K -f 8 -n 2 -w 1)

"$netlab" up 2 || exit 1

on() { timeout -k 5 "$limit" "$netlab" exec "$@"; }

# each COMMAND.. starts 4 ranks by hand, 2 on each host, and waits for all. In the command %r stands
# for the rank, %h for the number of its host and %l for the rank there, all from 0.
each() {
	local rank word words pids=() status=0
	for rank in 0 1 2 3; do
		words=()
		for word in "$@"; do
			word=${word//%r/$rank} word=${word//%h/$((rank / 2))}
			words+=("${word//%l/$((rank % 2))}")
		done
		on $((rank / 2 + 1)) "${words[@]}" &
		pids+=($!)
	done
	for rank in "${pids[@]}"; do wait "$rank" || status=$?; done
	return "$status"
}

# Processes that ranks left behind on the hosts; Slurm's own daemons may stay.
left_behind() {
	local host pid name
	for host in 1 2; do
		for pid in $(ip netns pids "nl$host"); do
			name=$(cat "/proc/$pid/comm" 2>/dev/null) || continue
			case $name in slurmd | slurmstepd) ;; *) echo "$pid $name" ;; esac
		done
	done
}

passed=0 failed=()

# check NAME COMMAND..: one case.
check() {
	local name=$1 log=$tmp/$1.log start=$EPOCHREALTIME why='' left status=0
	shift
	[[ $wanted == '  ' || $wanted == *" $name "* ]] || return 0
	"$@" >"$log" 2>&1 </dev/null || status=$?
	if [ $status -eq 124 ] || [ $status -eq 137 ]; then
		why="not done after $limit s"
	elif [ $status -ne 0 ]; then
		why="exit status $status"
	elif ! grep -qE '^# ranks: 4 .* hosts: 2 ' "$log"; then
		why="it does not say 4 ranks on 2 hosts"
	elif ! grep -qE '^# Out of bounds values : 0 OK' "$log"; then
		why="it does not say '# Out of bounds values : 0 OK'"
	fi
	for _ in $(seq 20); do
		left=$(left_behind)
		[ -n "$left" ] || break
		sleep 0.1
	done
	if [ -n "$left" ]; then
		why="${why:+$why; }left behind: $left"
		# shellcheck disable=SC2046 # words: the process ids, all on our own hosts
		kill -KILL $(awk '{ print $1 }' <<<"$left") 2>/dev/null
	fi
	local seconds
	seconds=$(awk "BEGIN { printf \"%.1fs\", $EPOCHREALTIME - $start }")
	if [ -z "$why" ]; then
		passed=$((passed + 1))
		printf 'ok    lab/%-14s %s\n' "$name" "$seconds"
	else
		failed+=("$name")
		printf 'FAIL  lab/%-14s %s  %s\n' "$name" "$seconds" "$why"
		sed 's/^/      | /' "$log" | tail -25
	fi
}

# torchrun's agents hold MASTER_PORT with a store of their own, and so does this.
torchrun() {
	local agent status
	"$netlab" exec 1 python3 -c 'import socket, time; s = socket.create_server(("10.77.0.1", 29500)); time.sleep(600)' &
	agent=$!
	each env RANK=%r WORLD_SIZE=4 LOCAL_RANK=%l LOCAL_WORLD_SIZE=2 GROUP_RANK=%h GROUP_WORLD_SIZE=2 \
		MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 OMP_NUM_THREADS=1 TORCHELASTIC_RUN_ID=job7 \
		TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_MAX_RESTARTS=0 "${job[@]}"
	status=$?
	kill "$agent"
	wait "$agent" 2>/dev/null
	return "$status"
}

# shellcheck disable=SC2054 # the commas belong to the words
hydra=(mpiexec.mpich -launcher rsh -launcher-exec "$lab/netlab-rsh" -hosts h1:2,h2:2 -n 4)
# shellcheck disable=SC2054
openmpi=(mpirun.openmpi --mca plm_rsh_agent "$lab/netlab-rsh" --host h1:2,h2:2 --bind-to none)

check hydra on 1 "${hydra[@]}" "${job[@]}"
check pals-aurora on 1 "$lab/fake-pals/pbs-run" -m aurora 2 mpiexec --np 4 --ppn 2 "${job[@]}"
check pals-polaris on 1 "$lab/fake-pals/pbs-run" -m polaris 2 mpiexec --np 4 --ppn 2 "${job[@]}"
check openmpi on 1 "${openmpi[@]}" -x GOCCL_ROOT=10.77.0.1:29600 "${job[@]}"
check torchrun torchrun
check root each env GOCCL_RANK=%r GOCCL_SIZE=4 GOCCL_ROOT=10.77.0.1:29700 "${job[@]}"
mkdir "$tmp/store"
check store each env GOCCL_RANK=%r GOCCL_SIZE=4 GOCCL_STORE="$tmp/store" "${job[@]}"

if slurm=$("$lab/slurm-up.sh" -l); then
	export SLURM_CONF=$slurm/slurm.conf
	step=(timeout -k 5 "$limit" srun --kill-on-bad-exit=1 -N2 -n4 --ntasks-per-node=2)
	check srun "${step[@]}" "${job[@]}"
	check pmi2 "${step[@]}" --mpi=pmi2 "${job[@]}"
	check pmix "${step[@]}" --mpi=pmix "${job[@]}"
	check slurm-hydra timeout -k 5 "$limit" salloc -Q -N2 --ntasks-per-node=2 mpiexec.mpich "${job[@]}"
else
	failed+=(slurm)
fi

if [ ${#failed[@]} -eq 0 ] && [ $passed -gt 0 ]; then
	echo "ok    lab: $passed cases of 4 ranks on 2 hosts"
	exit 0
fi
echo "FAIL  lab: $passed good, ${#failed[@]} failed: ${failed[*]-none was run}"
exit 1
