#!/bin/bash
# usage: run.sh [BENCH [CASE..]]
#
# Runs bench under every launcher there is, as 4 ranks on 2 hosts: each of bench's operations must
# find 4 ranks on 2 hosts and no wrong value, in one table. BENCH is the built command; without it,
# it is built. CASE names some of the cases:
#   started by a launcher   hydra pmi2 srun pmix slurm-hydra pals-aurora pals-polaris openmpi
#   by hand, as if by one   torchrun torchrun-static torchrun-c10d root store
#   starting itself         self-salloc self-sbatch self-shell self-four self-one-host self-pals-aurora
#                           self-pals-polaris self-hydra self-openmpi unshared launch-salloc
#                           launch-pals doctor
#   scripts of deploy/batch deploy-pals deploy-mpiexec deploy-sbatch
#   training, examples/gpt  gpt-hydra gpt-pals gpt-srun
# Where bench starts itself, only the host it is started on sees its file, as after `go run`.
# GOCCL_LAB_LIMIT=90: seconds for a case. GOCCL_LAB_SHARED=/var/lib: where a directory is made that
# all hosts see; each has a /tmp of its own.
set -u

lab=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$lab/../.." && pwd)
limit=${GOCCL_LAB_LIMIT:-90}
recorded=$root/ccl/boot/testdata/env
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

"$lab/need" netlab slurm pmix mpich openmpi pals || exit 1

tmp=$(mktemp -d -p "${GOCCL_LAB_SHARED:-/var/lib}" goccl-lab.XXXXXX) || exit 1
own=$(mktemp -d -t goccl-lab.XXXXXX) || exit 1 # this machine's; the hosts do not see it
# The hosts run some of the lab's programs, and do not see a repository in /tmp.
cp -R "$lab" "$tmp/lab" || exit 1
lab=$tmp/lab netlab=$tmp/lab/netlab.sh
clean() {
	local slurm
	cd /
	for slurm in "$tmp/slurm" "$own/slurm"; do
		[ ! -e "$slurm/up" ] || "$lab/slurm-down.sh" "$slurm"
	done
	"$netlab" down
	rm -rf "$tmp" "$own"
}
trap clean EXIT
trap 'exit 130' INT TERM

bench=${1:-}
[ $# -eq 0 ] || shift
if [ -z "$bench" ]; then
	bench=$tmp/bench
	(cd "$root" && CGO_ENABLED=0 go build -o "$bench" ./bench) || exit 1
fi
cp "$bench" "$own/bench" || exit 1
[ "$bench" -ef "$tmp/bench" ] || cp "$bench" "$tmp/bench" || exit 1
bench=$tmp/bench
wanted=" $* "
args=(-op all -e 64K -f 8 -n 2 -w 1)
job=("$bench" "${args[@]}")
# shellcheck disable=SC2054 # the comma belongs to the word
some=(-op allreduce,alltoallv -e 64K -f 8 -n 2 -w 1)
self=("$own/bench" "${some[@]}") # for this machine
self1=(/tmp/bench "${some[@]}")  # for host 1

cd "$tmp" || exit 1
NETLAB_TMP=1 "$netlab" up 4 || exit 1

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

on 1 cp "$bench" /tmp/bench || exit 1

# Processes that ranks left behind on the hosts, and copies of the program; Slurm's daemons may stay.
left_behind() {
	local host pid name
	compgen -G "$tmp/.goccl-bench-*" | sed 's/^/- /'
	on 1 sh -c 'ls -d /tmp/goccl-bench-* /tmp/.goccl-bench-* 2>/dev/null' | sed 's/^/- /'
	for host in 1 2 3 4; do
		for pid in $(ip netns pids "nl$host"); do
			name=$(cat "/proc/$pid/comm" 2>/dev/null) || continue
			case $name in slurmd | slurmstepd) ;; *) echo "$pid $name" ;; esac
		done
	done
}

passed=0 failed=()

# check NAME COMMAND..: one case, of $ranks ranks on $hosts hosts, whose output has $want.
ranks=4 hosts=2 want='^# Out of bounds values : 0 OK'
check() {
	local name=$1 log=$tmp/$1.log start=$EPOCHREALTIME why='' left status=0
	shift
	[[ $wanted == '  ' || $wanted == *" $name "* ]] || return 0
	"$@" >"$log" 2>&1 </dev/null || status=$?
	if [ $status -eq 124 ] || [ $status -eq 137 ]; then
		why="not done after $limit s"
	elif [ $status -ne 0 ]; then
		why="exit status $status"
	elif [ -n "$ranks" ] && ! grep -qE "^# ranks: $ranks .* hosts: $hosts " "$log"; then
		why="it does not say $ranks ranks on $hosts hosts"
	elif [ "$(grep -cE "$want" "$log")" != 1 ]; then
		why="it does not say '$want' once"
	fi
	for _ in $(seq 20); do
		left=$(left_behind)
		[ -n "$left" ] || break
		sleep 0.1
	done
	if [ -n "$left" ]; then
		why="${why:+$why; }left behind: $left"
		# shellcheck disable=SC2046 # words: the process ids, all on our own hosts
		kill -KILL $(awk '$1 != "-" { print $1 }' <<<"$left") 2>/dev/null
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

# recorded CASE: with what the real launcher has set, in ccl/boot/testdata/env. The recorded agents'
# own store is not there: its port is free.
recorded() {
	local rank pids=() status=0
	for rank in 0 1 2 3; do
		mapfile -t vars <"$recorded/$1.$rank.env"
		on $((rank / 2 + 1)) env -i PATH="$PATH" "${vars[@]}" "${job[@]}" &
		pids+=($!)
	done
	for rank in "${pids[@]}"; do wait "$rank" || status=$?; done
	return "$status"
}

# shellcheck disable=SC2054 # the commas belong to the words
hydra=(mpiexec.mpich -launcher rsh -launcher-exec "$lab/netlab-rsh" -hosts h1:2,h2:2 -n 4)
# shellcheck disable=SC2054
openmpi=(mpirun.openmpi --mca plm_rsh_agent "$lab/netlab-rsh" --host h1:2,h2:2 --bind-to none)

# PALS and PBS give their files to all nodes; here they are in TMPDIR.
mkdir spool
pbs=(env TMPDIR="$tmp/spool" "$lab/fake-pals/pbs-run")

# Jobs beside the lab do not meet at the address of its bridge, which goes with it.
# shellcheck disable=SC2016 # expanded by the inner shell
ranks='' want='^beside the lab$' check own-name \
	sh -c 'getent ahosts "$(hostname)" | grep "^10\.77\." || echo beside the lab'

check hydra on 1 "${hydra[@]}" "${job[@]}"
check pals-aurora on 1 "${pbs[@]}" -m aurora 2 mpiexec --np 4 --ppn 2 "${job[@]}"
check pals-polaris on 1 "${pbs[@]}" -m polaris 2 mpiexec --np 4 --ppn 2 "${job[@]}"
check openmpi on 1 "${openmpi[@]}" -x GOCCL_ROOT=10.77.0.1:29600 "${job[@]}"
check torchrun torchrun
check torchrun-static recorded torchrun-static
check torchrun-c10d recorded torchrun-c10d
check root each env GOCCL_RANK=%r GOCCL_SIZE=4 GOCCL_ROOT=10.77.0.1:29700 "${job[@]}"
mkdir "$tmp/store"
check store each env GOCCL_RANK=%r GOCCL_SIZE=4 GOCCL_STORE="$tmp/store" "${job[@]}"

# batch COMMAND..: a batch script that runs it, and what it printed. sbatch -W would ask every 10 s.
batch() {
	local id
	{ echo '#!/bin/sh' && printf '%q ' "$@"; } >job.sh
	id=$(sbatch --parsable -N2 --ntasks-per-node=2 -o job.out job.sh) || return
	for _ in $(seq $((limit * 10))); do
		[ -n "$(squeue -h -j "$id" 2>/dev/null)" ] || break
		sleep 0.1
	done
	cat job.out
	scontrol show job "$id" | grep -q ' ExitCode=0:0'
}

# shell COMMAND..: it runs in the shell that srun --pty gives on the first node.
shell() { script -qec "salloc -Q -N2 --ntasks-per-node=2 srun -n1 -N1 --pty timeout $limit $*" /dev/null; }

# Bench starts itself.
printf 'h1 slots=2\nh2 slots=2\n' >hosts
check self-pals-aurora on 1 "${pbs[@]}" -m aurora 2 "${self1[@]}" -ppn 2
check self-pals-polaris on 1 "${pbs[@]}" -m polaris -p 2 2 "${self1[@]}"
check self-hydra on 1 env HYDRA_LAUNCHER=rsh HYDRA_LAUNCHER_EXEC="$lab/netlab-rsh" "${self1[@]}" -hostfile hosts -launcher mpiexec.mpich
check self-openmpi on 1 env OMPI_MCA_plm_rsh_agent="$lab/netlab-rsh" "${self1[@]}" -hostfile hosts -launcher mpirun.openmpi
# fails COMMAND..: it must not succeed.
fails() { ! "$@"; }

ranks='' want='^bench: hint: a node does not see the program' check unshared fails on 1 \
	env HYDRA_LAUNCHER=rsh HYDRA_LAUNCHER_EXEC="$lab/netlab-rsh" "${self1[@]}" -hostfile hosts -launcher mpiexec.mpich -share /tmp
ranks='' want='^h2 1: .*h2$' check launch-pals on 1 "${pbs[@]}" 2 /tmp/bench launch -ppn 1 -- hostname
ranks='' want='^# doctor: ' check doctor on 1 "${pbs[@]}" 2 /tmp/bench doctor -ppn 2

cp -R "$root/deploy/batch" "$tmp/batch" || exit 1
check deploy-pals on 1 env BENCH=/tmp/bench "${pbs[@]}" 2 "$tmp/batch/pals.qsub" "${some[@]}" -ppn 2
ranks='' want='^h2 3: h2$' check deploy-mpiexec on 1 env BENCH=/tmp/bench "${pbs[@]}" -p 2 2 "$tmp/batch/mpiexec.qsub" hostname

# Training: a layout of 2 x 2 ranks, tp on each host and dp between them, has the losses of one rank.
(cd "$root" && CGO_ENABLED=0 go build -o "$tmp/gpt" ./examples/gpt) || exit 1
gpt=("$tmp/gpt" -data "$tmp/book" -layers 2 -steps 20 -log 20)
head -c 65536 "$(go env GOROOT)/src/testdata/Isaac.Newton-Opticks.txt" >"$tmp/book" || exit 1
last_loss() { sed -n 's/^\(\[0\] \)\?.*step=20 loss=\([0-9.]*\) .*/\2/p' "$1"; }
if [[ $wanted == '  ' || $wanted == *' gpt-'* ]]; then
	"${gpt[@]}" >alone.log || exit 1
fi

# trains COMMAND..: its loss after 20 steps is that of one rank, and it exits with 0.
trains() {
	local log=$tmp/trains.log
	"$@" -dp 2 -tp 2 -zero 1 >"$log" 2>&1 || { cat "$log"; return 1; }
	cat "$log"
	awk -v a="$(last_loss alone.log)" -v b="$(last_loss "$log")" 'BEGIN { exit !(a > 0 && b > 0 && (a - b) ^ 2 < 1e-8) }' ||
		{ echo "the loss is not that of one rank, $(last_loss alone.log)"; return 1; }
}
gpt_says='^rank 0 of 4 .2 hosts, '
ranks='' want=$gpt_says check gpt-hydra trains on 1 "${hydra[@]}" "${gpt[@]}"
ranks='' want=$gpt_says check gpt-pals trains on 1 "${pbs[@]}" -m aurora 2 mpiexec --np 4 --ppn 2 "${gpt[@]}"

if slurm=$("$lab/slurm-up.sh" -l -n 4 "$tmp/slurm"); then
	export SLURM_CONF=$slurm/slurm.conf
	step=(timeout -k 5 "$limit" srun --kill-on-bad-exit=1 -N2 -n4 --ntasks-per-node=2)
	check srun "${step[@]}" "${job[@]}"
	check pmi2 "${step[@]}" --mpi=pmi2 "${job[@]}"
	check pmix "${step[@]}" --mpi=pmix "${job[@]}"
	ranks='' want=$gpt_says check gpt-srun trains "${step[@]}" "${gpt[@]}"
	check slurm-hydra timeout -k 5 "$limit" salloc -Q -N2 --ntasks-per-node=2 mpiexec.mpich "${job[@]}"
	alloc=(timeout -k 5 "$limit" salloc -Q)
	check self-salloc "${alloc[@]}" -N2 --ntasks-per-node=2 "${self[@]}"
	check self-shell shell "$bench" "${some[@]}"
	check self-sbatch batch "${self1[@]}"
	check deploy-sbatch batch env BENCH=/tmp/bench "$tmp/batch/slurm.sbatch" "${some[@]}"
	ranks=8 hosts=4 check self-four "${alloc[@]}" -N4 --ntasks-per-node=2 "${self[@]}"
	ranks='' want='^3: h2$' check launch-salloc "${alloc[@]}" -N2 --ntasks-per-node=2 "$own/bench" launch -- hostname
	if other=$(SLURM_LAB_PORT=26817 "$lab/slurm-up.sh" "$own/slurm"); then
		# Both nodes are this machine, under names that only Slurm knows.
		hosts=1 SLURM_CONF=$other/slurm.conf check self-one-host "${alloc[@]}" -N2 -n4 "${self[@]}"
		"$lab/slurm-down.sh" "$other"
	fi
else
	failed+=(slurm)
fi

if [ ${#failed[@]} -eq 0 ] && [ $passed -gt 0 ]; then
	echo "ok    lab: $passed cases in $SECONDS s"
	exit 0
fi
echo "FAIL  lab: $passed good, ${#failed[@]} failed: ${failed[*]-none was run}"
exit 1
