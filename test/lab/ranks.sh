# ranks.sh: hosts of netlab.sh, and on them ranks of a test of test/faults. faults.sh and spares.sh read it;
# it is no program. Linux, root.
# shellcheck shell=bash
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
net=$here/netlab.sh
PATH=$PATH:/usr/sbin:/sbin
peer=2 # PeerTimeout of the job, in seconds

tmp=$(mktemp -d) || exit 1
pids=()
cleanup() {
	[ ${#pids[@]} -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null
	[ ${#pids[@]} -eq 0 ] || wait "${pids[@]}" 2>/dev/null
	"$net" down >/dev/null 2>&1
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# lab N: hosts 1 to N, and the program of the ranks.
lab() {
	CGO_ENABLED=0 go test -C "$here/../.." -tags fault -c -o "$tmp/faults.test" ./test/faults || exit 1
	"$net" up "$1" >/dev/null || exit 1
}

# run HOST OUT TEST NAME=VALUE..: a process of that test on a host, which writes to $tmp/out.OUT.
within=() # what starts its program, if not the shell
run() {
	local host=$1 out=$2 test=$3
	shift 3
	env GOCCL_SECRET=the-secret-of-the-lab GOCCL_FAULTS_NET=$peer "$@" \
		timeout -k 1 90 "$net" exec "$host" "${within[@]}" "$tmp/faults.test" -test.run "^$test\$" >"$tmp/out.$out" 2>&1 &
	pids+=($!)
}

# job N TEST NAME=VALUE..: N ranks of that test, rank r on host r+1; each writes to $tmp/out.r.
job() {
	local n=$1 test=$2 r
	shift 2
	for r in $(seq 0 $((n - 1))); do
		run $((r + 1)) "$r" "$test" RANK="$r" WORLD_SIZE="$n" MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 "$@"
	done
}

# until_said WORDS N: wait until so many lines begin with these words.
until_said() {
	for _ in $(seq 300); do
		[ "$(cat "$tmp"/out.* | grep -c "^$1")" -ge "$2" ] && return
		sleep 0.1
	done
	echo "no $2 lines \"$1\":"
	cat "$tmp"/out.*
	return 1
}

# finish: wait for all processes, and mend the network.
finish() {
	wait "${pids[@]}"
	pids=()
	"$net" heal
}
