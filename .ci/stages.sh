#!/bin/bash
# stages.sh is read by .ci/run and .ci/nightly, which run stages: commands that check something, each once, whatever has
# become of the others. Lanes work off a queue of stages beside each other: most wait for half of their time. The exit status of
# the whole is 1 if a stage failed, or if one did not run because the time was used up.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# -trimpath: what one clone has built and tested, another finds in the build cache.
export GOCCL_REQUIRE=all GOFLAGS="${GOFLAGS:+$GOFLAGS }-buildvcs=false -trimpath" DEBIAN_FRONTEND=noninteractive
logs=$(mktemp -d) || exit 1
trap 'rm -rf "$logs"' EXIT
mkdir "$logs/out"
failed=0 # of this lane
: "${limit:?seconds for all stages together}"

packages=(
	ca-certificates make gcc libc6-dev shellcheck     # modules, make race, make shell
	qemu-user                                          # make cross
	iproute2 nftables util-linux python3               # test/lab: hosts, PALS' stand-in
	slurmctld slurmd slurm-client libpmix-dev          # test/lab: srun
	mpich openmpi-bin                                  # test/lab: mpiexec
	chromium                                           # bench's report in a browser
	libmpich-dev libopenmpi-dev pkg-config             # their headers; make interop: the real empi
	libx11-dev libxcursor-dev libxi-dev libxinerama-dev libxrandr-dev libxxf86vm-dev libgl-dev # make interop: leabra
	g++ python3-pip unzip libfabric1 libhwloc15        # the vendors' headers and libraries, from wheels
)

# again COMMAND..: three attempts, for what comes over the network.
again() { timeout 600 "$@" || { sleep 5 && timeout 600 "$@"; } || { sleep 20 && timeout 600 "$@"; }; }

install() {
	again apt-get update -qq && again apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null || return
	local module
	while read -r module; do
		again go mod download -C "$(dirname "$module")" || return
	done < <(find . -name go.mod)
}

# row NAME START RESULT WALL CPU: a row of the table.
row() { printf '%5d %-12s %-12s %5s s %5s s\n' "$2" "$1" "$3" "$4" "$5" >>"$logs/rows"; }

# computed sets computed to how many seconds the commands of this lane have computed so far.
computed() {
	local file=$logs/times.$BASHPID
	times >"$file" # not in a subshell, which has no children yet
	computed=$(awk 'NR == 2 { split($0, t, /[ms ]+/); print int(60 * t[1] + t[2] + 60 * t[3] + t[4]) }' "$file")
}

# stage NAME COMMAND..
stage() {
	local name=$1 start=$SECONDS left=$((limit - SECONDS)) result=ok status cpu
	shift
	if [ "$left" -le 0 ]; then
		row "$name" "$start" 'NOT RUN' 0 0
		failed=1
		return
	fi
	computed
	cpu=$computed
	# Into a file, not a pipe to wait for: a process that outlives its stage could hold it open.
	if [ "$(type -t "$1")" = function ]; then
		"$@" >"$logs/out/$name" 2>&1 </dev/null
	else
		timeout -k 20 "$left" "$@" >"$logs/out/$name" 2>&1 </dev/null
	fi
	status=$?
	case $status in
	0) ;;
	124 | 137) result='OUT OF TIME' ;;
	*) result=FAILED ;;
	esac
	[ "$result" = ok ] || failed=1
	computed
	row "$name" "$start" "$result" $((SECONDS - start)) $((computed - cpu))
	{
		flock 9
		echo
		echo "=== $name: $* ($result, $((SECONDS - start)) s)"
		cat "$logs/out/$name"
	} 9>"$logs/lock"
}

# spare SECONDS NAME COMMAND..: a stage, if so much time is left.
spare() {
	if [ $((limit - SECONDS)) -ge "$1" ]; then
		shift && stage "$@"
	else
		row "$2" "$SECONDS" 'LEFT OUT' 0 0
	fi
}

# later STAGE..: puts a stage, or a spare, into the queue that lanes work off: later stage NAME COMMAND..
queue=()
later() { queue+=("$(printf '%q ' "$@")"); }

# lane works off the queue, which it shares with other lanes.
lane() {
	local i
	failed=0
	while true; do
		{
			flock 8
			i=$(<"$logs/next")
			echo $((i + 1)) >"$logs/next"
		} 8>"$logs/queue"
		[ "$i" -lt ${#queue[@]} ] || exit $failed
		eval "${queue[i]}"
	done
}

# lanes N: works off the queue in N lanes beside each other. A lane that ends before the queue has failed.
lanes() {
	local p pids=()
	echo 0 >"$logs/next"
	for _ in $(seq "$1"); do
		lane &
		pids+=($!)
	done
	for p in "${pids[@]}"; do
		wait "$p" || failed=1
	done
	[ "$(<"$logs/next")" -ge $((${#queue[@]} + $1)) ] || failed=1
}

# "${alone[@]}" COMMAND..: not while another lane runs one so: test/lab has one set of hosts.
# shellcheck disable=SC2034 # for who reads this file
alone=(flock "$logs/alone")

# finish prints the table and ends the program.
finish() {
	local name result=ok
	for name in "$logs"/out/*; do
		grep -HE '^(FAIL|--- FAIL|panic:|skipped:|[0-9]+ tests) ?' "$name" | sed 's|^.*/||; s|:|: |'
	done
	[ $failed = 0 ] && [ -s "$logs/rows" ] || result=FAILED
	echo
	echo '=== stages by when they began (s): time, and time on processors'
	sort -n "$logs/rows"
	printf '%5d %-12s %-12s %5d s\n' 0 total "$result" "$SECONDS"
	[ $result = ok ]
	exit
}
