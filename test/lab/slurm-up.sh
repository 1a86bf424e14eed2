#!/bin/bash
# slurm-up.sh: a Slurm cluster on one machine, of Debian's slurmctld, slurmd and slurm-client.
#
# usage: slurm-up.sh [-n NODES] [-c CPUS] [-a none|munge] [-i] [-l] [DIR]
#   -n, -c  nodes (2), CPUs of each (8; they are claimed, not counted)
#   -a      authentication between the daemons (none)
#   -i      salloc opens its shell in a step (LaunchParameters=use_interactive_step)
#   -l      node K is netlab host K and has its name; netlab.sh up NODES comes first. Otherwise
#           all nodes are on this host, and their names, n1, n2, .., are known to Slurm alone
#
# Prints DIR, by default a new temporary directory, which holds all of its files:
#   dir=$(slurm-up.sh -l); . "$dir/env"; srun -N2 hostname; slurm-down.sh "$dir"
# SLURM_LAB_PORT=16817: the controller's port; nodes listen above it.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/sbin
nodes=2 cpus=8 auth=none interactive='' lab=''
while getopts n:c:a:il option; do
	case $option in
	n) nodes=$OPTARG ;;
	c) cpus=$OPTARG ;;
	a) auth=$OPTARG ;;
	i) interactive=LaunchParameters=use_interactive_step ;;
	l) lab=1 ;;
	*) sed -n '/^# usage/,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))

if [ $# -ge 1 ]; then
	dir=$1
	[ ! -e "$dir/up" ] || { echo "slurm-up: $dir is up already: slurm-down.sh $dir" >&2; exit 1; }
	mkdir -p "$dir"
else
	dir=$(mktemp -d -t slurm-lab.XXXXXX)
	touch "$dir/temporary" # slurm-down.sh removes it
fi
mkdir -p "$dir/state"

# name K: node K's. A job finds its rank 0 by it, so on netlab it is the host's name, as on a cluster.
name() { if [ -n "$lab" ]; then cat "/run/netlab/$1/name"; else echo "n$1"; fi; }
for k in $(seq "$nodes"); do mkdir -p "$dir/spool.$(name "$k")" "$dir/tmp.$(name "$k")"; done

case $auth in
none)
	auth_lines='AuthType=auth/none
CredType=cred/none'
	;;
munge)
	[ -f "$dir/munge.key" ] || (umask 077 && head -c 1024 /dev/urandom >"$dir/munge.key")
	munged --force --key-file="$dir/munge.key" --socket="$dir/munge.sock" --pid-file="$dir/munged.pid" \
		--log-file="$dir/munged.log" --seed-file="$dir/munge.seed" >/dev/null
	auth_lines="AuthType=auth/munge
AuthInfo=socket=$dir/munge.sock
CredType=cred/munge"
	;;
*)
	echo "slurm-up: -a $auth: none or munge" >&2
	exit 2
	;;
esac

port=${SLURM_LAB_PORT:-16817}
self=$(hostname -s)
controller=127.0.0.1
[ -z "$lab" ] || controller=10.77.0.254

# node K: its line of slurm.conf. On netlab all listen on one port, each at an address of its own.
node() {
	local at="NodeHostname=$self NodeAddr=127.0.0.1 Port=$((port + 100 + $1))"
	[ -z "$lab" ] || at="NodeAddr=10.77.0.$1 Port=$((port + 1))"
	echo "NodeName=$(name "$1") $at CPUs=$cpus State=UNKNOWN"
}

{
	cat <<-END
		ClusterName=lab
		SlurmctldHost=$self($controller)
		SlurmctldPort=$port
		SlurmUser=$(id -un)
		SlurmdUser=$(id -un)
		$auth_lines
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		MpiDefault=none
		SwitchType=switch/none
		ReturnToService=2
		SlurmctldTimeout=300
		SlurmdTimeout=300
		KillWait=2
		SlurmctldPidFile=$dir/slurmctld.pid
		SlurmdPidFile=$dir/slurmd.%n.pid
		SlurmdSpoolDir=$dir/spool.%n
		StateSaveLocation=$dir/state
		SlurmctldLogFile=$dir/slurmctld.log
		SlurmdLogFile=$dir/slurmd.%n.log
		TmpFS=$dir/tmp.%n
		SlurmdParameters=config_overrides
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		JobAcctGatherType=jobacct_gather/none
		AccountingStorageType=accounting_storage/none
		JobCompType=jobcomp/none
		$interactive
	END
	for k in $(seq "$nodes"); do node "$k"; done
	echo "PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
} >"$dir/slurm.conf"
export SLURM_CONF=$dir/slurm.conf
echo "export SLURM_CONF=$SLURM_CONF" >"$dir/env"

touch "$dir/up"
# The daemons must not hold our standard output, which $(slurm-up.sh) reads to its end.
slurmctld -c >"$dir/start.log" 2>&1
for k in $(seq "$nodes"); do
	if [ -n "$lab" ]; then
		"$here/netlab.sh" exec "$k" slurmd -N "$(name "$k")"
	else
		slurmd -N "$(name "$k")"
	fi >>"$dir/start.log" 2>&1
done

for _ in $(seq 100); do
	if [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = "$nodes" ]; then
		echo "$dir"
		exit 0
	fi
	sleep 0.1
done
{
	echo "slurm-up: the nodes are not idle after 10 s; logs are in $dir; end it with slurm-down.sh $dir"
	cat "$dir/start.log"
	sinfo
} >&2
exit 1
