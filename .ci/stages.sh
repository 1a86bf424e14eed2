#!/bin/bash
# stages.sh is read by .ci/run and .ci/nightly, which run stages: commands that check something, each once, whatever
# has become of the others. Lanes work off a queue of stages beside each other, by the processors that each takes:
# most wait for a part of their time. The exit status of the whole is 1 if a stage failed, or if one that is no spare
# did not end because the time was used up. With arguments only the stages with these names run, and install.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# -trimpath: what one clone has built and tested, another finds in the build cache. -vet: stage lint vets all that there is.
export GOCCL_REQUIRE=all GOFLAGS="${GOFLAGS:+$GOFLAGS }-buildvcs=false -trimpath -vet=off" DEBIAN_FRONTEND=noninteractive
logs=$(mktemp -d) || exit 1
trap 'rm -rf "$logs"' EXIT
mkdir "$logs/out"
failed=0 # 1 once a stage has failed
only=("$@")
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

# settle has what go test keeps of another clone's tests hold here where it may. A result holds while the files that
# the test has opened are as old, so each gets a time that follows from what is in it. go test does not know of files
# that a test has a compiler read, so the sum of all that are not Go is the build ID of each binary; nor of Go files
# that a test builds: such a test asks for the tree's sum.
settle() {
	git diff --quiet HEAD || { echo 'the tree differs from its commit'; return 0; }
	local sum name
	while read -r _ _ sum name; do
		touch -h -d "@$((16#${sum:0:7}))" -- "$name" || return
	done < <(git ls-tree -r -t HEAD)
}
export GOCCL_TEST_TREE
GOCCL_TEST_TREE=$(git rev-parse 'HEAD^{tree}' 2>/dev/null) || GOCCL_TEST_TREE=none
others=$(git ls-tree -r HEAD 2>/dev/null | grep -vE '\.(go|md|svg)$' | sha256sum)
GOFLAGS+=" -ldflags=-B=0x${others:0:32}"

install() {
	settle || return
	again apt-get update -qq && again apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null || return
	local module
	while read -r module; do
		again go mod download -C "$(dirname "$module")" || return
	done < <(find . -name go.mod)
}

# asked NAME: whether the stage is to run at all.
asked() { [ ${#only[@]} = 0 ] || [[ " install ${only[*]} " == *" $1 "* ]]; }

# row NAME START RESULT WALL CPU: a row of the table.
row() { printf '%5d %-14s %-12s %5s s %5s s\n' "$2" "$1" "$3" "$4" "$5" >>"$logs/rows"; }

# computed sets computed to how many seconds the commands of this shell have computed so far.
computed() {
	local file=$logs/times.$BASHPID
	times >"$file" # not in a subshell, which has no children yet
	computed=$(awk 'NR == 2 { split($0, t, /[ms ]+/); print int(60 * t[1] + t[2] + 60 * t[3] + t[4]) }' "$file")
}

# stage NAME COMMAND..
stage() {
	local name=$1 start=$SECONDS left=$((limit - SECONDS)) result=ok status cpu
	shift
	asked "$name" || return 0
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
	124 | 137)
		result='OUT OF TIME'
		[ -z "${spared:-}" ] || [ $((limit - SECONDS)) -gt 0 ] || result='CUT OFF'
		;;
	*) result=FAILED ;;
	esac
	[ "$result" = ok ] || [ "$result" = 'CUT OFF' ] || failed=1
	computed
	row "$name" "$start" "$result" $((SECONDS - start)) $((computed - cpu))
	{
		flock 9
		echo
		echo "=== $name: $* ($result, $((SECONDS - start)) s)"
		cat "$logs/out/$name"
	} 9>"$logs/lock"
}

# spare SECONDS NAME COMMAND..: a stage, if so much time is left. One that takes all of it and more is cut off: it has
# not failed.
spare() {
	if ! asked "$2" || [ $((limit - SECONDS)) -ge "$1" ]; then
		shift && spared=1 stage "$@"
	else
		row "$2" "$SECONDS" 'LEFT OUT' 0 0
	fi
}

# later SHARE STAGE..: puts a stage, or a spare, into the queue that lanes work off: later SHARE stage NAME COMMAND..
# SHARE is how much of a processor it takes, in percent, beside others.
queue=() shares=()
later() {
	asked "$([ "$2" = stage ] && echo "$3" || echo "$4")" || return 0
	shares+=("$1")
	shift
	queue+=("$(printf '%q ' "$@")")
}

# in_turn I/N SHARE STAGE..: later, at each landing whose number of commits is I modulo N. The table names it at the
# others.
turn=$(git rev-list --count HEAD 2>/dev/null) || turn=0
in_turn() {
	local place=$1 name
	shift
	name=$([ "$2" = stage ] && echo "$3" || echo "$4")
	if [ $((turn % ${place#*/})) = "${place%/*}" ]; then
		later "$@"
	elif asked "$name"; then
		row "$name" "$SECONDS" 'IN TURN' 0 0
	fi
}

# take sets next to the first stage of the queue whose share of the processors is free, or to the first if nothing
# runs; to "wait" if there is none now, and to "" if the queue is empty.
take() {
	local busy i
	next=''
	{
		flock 8
		busy=$(<"$logs/busy")
		for i in "${!queue[@]}"; do
			[ ! -e "$logs/taken.$i" ] || continue
			next='wait'
			if [ "$busy" -eq 0 ] || [ $((busy + shares[i])) -le $(($(nproc) * 100)) ]; then
				: >"$logs/taken.$i"
				echo $((busy + shares[i])) >"$logs/busy"
				next=$i
				break
			fi
		done
	} 8>"$logs/queue"
}

# lane works off the queue, which it shares with other lanes. A stage has a shell of its own, which it may end.
lane() {
	local next bad=0
	while true; do
		take
		case $next in
		'') exit $bad ;;
		wait)
			sleep 1
			continue
			;;
		esac
		(failed=0 && eval "${queue[next]}" && exit $failed) || bad=1
		{
			flock 8
			echo $(($(<"$logs/busy") - shares[next])) >"$logs/busy"
		} 8>"$logs/queue"
	done
}

# lanes N: works off the queue in N lanes beside each other. Each of its stages has a row then, or they have failed.
lanes() {
	local p rows pids=()
	echo 0 >"$logs/busy"
	: >>"$logs/rows"
	rows=$(wc -l <"$logs/rows")
	for _ in $(seq "$1"); do
		lane &
		pids+=($!)
	done
	for p in "${pids[@]}"; do
		wait "$p" || failed=1
	done
	[ $(($(wc -l <"$logs/rows") - rows)) -eq ${#queue[@]} ] || failed=1
}

# finish prints the table and ends the program. Where MINUTES names a file, it has a table of Markdown then.
finish() {
	local name result=ok
	for name in "$logs"/out/*; do
		grep -HE '^(FAIL|--- FAIL|panic:|skipped:|[0-9]+ tests) ?' "$name" | sed 's|^.*/||; s|:|: |'
	done
	for name in "${only[@]}"; do
		grep -qE "^ *[0-9]+ $name " "$logs/rows" || { echo "no stage $name" && failed=1; }
	done
	[ $failed = 0 ] && [ -s "$logs/rows" ] || result=FAILED
	echo
	echo '=== stages by when they began (s): time, and time on processors'
	sort -n "$logs/rows" | tee "$logs/sorted"
	printf '%5d %-14s %-12s %5d s %5d s\n' 0 total "$result" "$SECONDS" "$(awk '{ n += $(NF - 1) } END { print n }' "$logs/rows")"
	[ -z "${MINUTES:-}" ] || minutes "$result" >"$MINUTES"
	[ $result = ok ]
	exit
}

# minutes RESULT: the table as a page.
minutes() {
	cat <<-EOF
		# Where CI's minutes go

		\`make minutes\` runs \`.ci/run\` and writes this page. The run on $(date -u +%Y-%m-%d), with $(nproc) processors: $1, $SECONDS seconds. A stage that
		is IN TURN runs at other landings, and in the night. Stages run beside each other, so their times overlap.

		| stage | result | begins (s) | takes (s) | computes (s) |
		|---|---|---|---|---|
	EOF
	awk '{
		result = $3; for (i = 4; i < NF - 3; i++) result = result " " $i
		printf "| %s | %s | %s | %s | %s |\n", $2, result, $1, $(NF - 3), $(NF - 1)
		wall += $(NF - 3); cpu += $(NF - 1)
	} END { printf "| sum | | | %d | %d |\n", wall, cpu }' "$logs/sorted"
}
