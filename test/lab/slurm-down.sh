#!/bin/bash
# usage: slurm-down.sh DIR
#
# Ends the cluster that slurm-up.sh keeps in DIR: its jobs, then exactly the daemons whose process
# ids are written there. DIR stays if the user had given it, with the logs in it.
set -u

dir=${1:-}
[ -n "$dir" ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
[ -e "$dir/up" ] || { echo "slurm-down: $dir is not up" >&2; exit 1; }
export SLURM_CONF=$dir/slurm.conf

jobs() { timeout 5 squeue -h -o %A 2>/dev/null; }

# alive PID: a zombie that waits for init to reap it counts as gone.
alive() {
	local state
	state=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) && [ "${state%% *}" != Z ]
}

ids=$(jobs)
if [ -n "$ids" ]; then
	# shellcheck disable=SC2086 # a list of words
	timeout 5 scancel $ids
	for _ in $(seq 30); do
		[ -n "$(jobs)" ] || break
		sleep 0.1
	done
fi

pids=''
for file in "$dir"/slurmd.*.pid "$dir/slurmctld.pid" "$dir/munged.pid"; do
	[ -s "$file" ] || continue
	pid=$(cat "$file")
	case $(cat "/proc/$pid/comm" 2>/dev/null) in
	slurmd* | slurmctld* | munged) kill -TERM "$pid" 2>/dev/null && pids="$pids $pid" ;;
	esac
done
for pid in $pids; do
	for _ in $(seq 50); do
		alive "$pid" || continue 2
		sleep 0.1
	done
	echo "slurm-down: process $pid ignores SIGTERM: SIGKILL" >&2
	kill -KILL "$pid"
done

if [ -e "$dir/temporary" ]; then
	rm -rf "$dir"
else
	rm -rf "$dir/up" "$dir/state" "$dir"/spool.* "$dir"/tmp.* "$dir"/*.pid "$dir/munge.sock"
fi
