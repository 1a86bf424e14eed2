#!/bin/bash
# netlab.sh: N hosts on one kernel, for tests of several machines. Linux, root.
#
# usage: netlab.sh COMMAND
#   up N                          make hosts 1..N and a bridge between them
#   down                          remove them; says what still runs there
#   exec I CMD...                 run CMD on host I
#   partition I J | cut I J       drop all frames between I and J, or only from I to J
#   delay I MS [LOSS% [JITTER_MS]]  one-way delay each way (a round trip grows by 2*MS)
#   rate I MBIT | loss I PERCENT  limit host I's link, or drop some of what it receives
#   link I up|down                plug or unplug host I
#   heal                          end every partition, delay, rate and loss
#   list                          hosts, and the faults in force
#
# A host has an address of its own (10.77.0.I), a host name, boot id, machine id, IPC namespace,
# /dev/shm, /sys and /etc/hosts. Hosts share files, process ids, the clock and the cores.
# From inside a host the command works as well: MPI launchers there reach the others by netlab-rsh.
#
# NETLAB_NAMES="a b .."  host names (h1, h2, ..)     NETLAB_MTU=1500
# NETLAB_TMP=1           a /tmp for each host        NETLAB_SHM=2g  size of each /dev/shm
set -eu

# One lab per machine: bridge, namespaces and addresses are the machine's, so the place is fixed.
state=/run/netlab
here=$(cd "$(dirname "$0")" && pwd)
mtu=${NETLAB_MTU:-1500}
PATH=$PATH:/usr/sbin:/sbin

die() {
	echo "netlab: $*" >&2
	exit 1
}

usage() {
	sed -n '/^# usage/,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
	exit 2
}

hosts() { seq "$(cat "$state/n")"; }

# mac I: host I's hardware address, which the packet filter knows it by.
mac() { printf '02:00:0a:4d:00:%02x' "$1"; }

need_host() { [ -e "$state/${1:-0}/mnt" ] || die "no host ${1:-}: see netlab.sh list"; }

# drop MATCH..: one rule of the bridge's packet filter.
drop() { nft add rule bridge netlab forward "$@" drop; }

# pid_of FILE NAME: the process id in FILE, if that process still runs under NAME.
pid_of() {
	local pid
	pid=$(cat "$1" 2>/dev/null) || return 1
	[ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$2" ] && echo "$pid"
}

# go_home: inside a host, start over in the namespaces that netlab was set up from. A holder
# process keeps them reachable.
go_home() {
	local holder
	holder=$(pid_of "$state/holder" sleep) || return 0
	[ "$(readlink /proc/self/ns/mnt)" != "$(readlink "/proc/$holder/ns/mnt")" ] || return 0
	exec nsenter --target "$holder" --mount --uts --ipc --net --wdns="$PWD" -- "$here/netlab.sh" "$@"
}

up() {
	local n=${1:-} i
	[[ $n =~ ^[1-9][0-9]*$ ]] || usage
	[ "$n" -le 250 ] || die "up $n: at most 250 hosts"
	[ ! -e "$state/n" ] || die "up already: netlab.sh down"
	mkdir -p "$state"
	# Namespaces are kept by bind mounts, which must not propagate into one another.
	mountpoint -q "$state" || { mount --bind "$state" "$state" && mount --make-private "$state"; }
	echo "$n" >"$state/n"
	setsid sleep infinity </dev/null >/dev/null 2>&1 &
	echo $! >"$state/holder"

	ip link add nlbr type bridge
	ip addr add 10.77.0.254/24 dev nlbr
	ip link set nlbr mtu "$mtu" up
	sysctl -qw net.bridge.bridge-nf-call-iptables=0 2>/dev/null || :
	nft add table bridge netlab
	nft 'add chain bridge netlab forward { type filter hook forward priority 0; }'

	printf '127.0.0.1 localhost\n10.77.0.254 %s\n' "$(hostname -s)" >"$state/hosts"
	# shellcheck disable=SC2086 # a list of words
	set -- ${NETLAB_NAMES:-}
	for i in $(seq "$n"); do
		mkdir -p "$state/$i"
		echo "${1:-h$i}" >"$state/$i/name"
		echo "10.77.0.$i ${1:-h$i} ${1:-h$i}.lab.test" >>"$state/hosts"
		shift || :
	done
	for i in $(seq "$n"); do add_host "$i"; done
	# Not this machine's own name: jobs beside the lab would meet at the bridge's address, which goes with the lab.
	grep -v '^127\|^10\.77\.0\.254 ' "$state/hosts" | sed 's/$/ # netlab/' >>/etc/hosts
}

add_host() {
	local i=$1 dir=$state/$1
	ip netns add "nl$i"
	ip link add "nlv$i" mtu "$mtu" type veth peer name eth0 mtu "$mtu" address "$(mac "$i")" netns "nl$i"
	ip link set "nlv$i" master nlbr up
	ip -n "nl$i" addr add "10.77.0.$i/24" dev eth0
	ip -n "nl$i" link set eth0 up
	ip -n "nl$i" link set lo up

	touch "$dir/uts" "$dir/ipc" "$dir/mnt"
	cat /proc/sys/kernel/random/uuid >"$dir/boot_id"
	tr -d - <"$dir/boot_id" >"$dir/machine-id"
	# A fresh sysfs shows the host's own network devices; the cgroup tree is carried over into it.
	# shellcheck disable=SC2016 # expanded by the inner shell
	nsenter --net="/run/netns/nl$i" \
		unshare --uts="$dir/uts" --ipc="$dir/ipc" --mount="$dir/mnt" --propagation private \
		sh -euc '
			dir=$1
			hostname "$(cat "$dir/name")"
			mount -t tmpfs -o size="$2" tmpfs /dev/shm
			if [ -d /sys/fs/cgroup ]; then mkdir -p "$dir/cgroup" && mount --rbind /sys/fs/cgroup "$dir/cgroup"; fi
			mount -t sysfs sysfs /sys
			if [ -d "$dir/cgroup" ]; then mount --rbind "$dir/cgroup" /sys/fs/cgroup && umount -l "$dir/cgroup"; fi
			mount --bind "$dir/../hosts" /etc/hosts
			mount --bind "$dir/name" /etc/hostname
			mount --bind "$dir/boot_id" /proc/sys/kernel/random/boot_id
			if [ -e /etc/machine-id ]; then mount --bind "$dir/machine-id" /etc/machine-id; fi
			if [ -n "$3" ]; then mount -t tmpfs tmpfs /tmp; fi
		' sh "$dir" "${NETLAB_SHM:-2g}" "${NETLAB_TMP:-}"
}

down() {
	local i pid f
	[ -e "$state/n" ] || return 0
	for i in $(hosts); do
		undelay "$i"
		for pid in $(ip netns pids "nl$i" 2>/dev/null); do
			echo "netlab: host $i still runs $pid $(cat "/proc/$pid/comm" 2>/dev/null || :)" >&2
		done
		ip link del "nlv$i" 2>/dev/null || :
		for f in mnt ipc uts; do umount "$state/$i/$f" 2>/dev/null || :; done
		ip netns del "nl$i" 2>/dev/null || :
	done
	nft delete table bridge netlab 2>/dev/null || :
	ip link del nlbr 2>/dev/null || :
	if pid=$(pid_of "$state/holder" sleep); then kill "$pid"; fi
	if [ -e "$state/bin" ]; then rm -rf "$(cat "$state/bin")"; fi
	grep -v '# netlab$' /etc/hosts >"$state/hosts" || :
	cat "$state/hosts" >/etc/hosts # in place: it may be a mount point
	umount "$state" 2>/dev/null || :
	rm -rf "$state"
}

run() {
	local dir=$state/$1 net=/run/netns/nl$1
	shift
	exec nsenter --net="$net" --uts="$dir/uts" --ipc="$dir/ipc" --mount="$dir/mnt" --wdns="$PWD" -- "$@"
}

# delay puts netdelay between host I and the bridge. It stands in for tc's netem, which many
# kernels are built without.
delay() {
	local i=$1 ms=$2 loss=${3:-0} jitter=${4:-0} bin
	undelay "$i"
	[ "$ms" != 0 ] || return 0
	if [ ! -e "$state/bin" ]; then # not in /run, which is often mounted noexec
		mktemp -d >"$state/bin"
		cc -O2 -o "$(cat "$state/bin")/netdelay" "$here/netdelay.c"
	fi
	bin=$(cat "$state/bin")
	ip link set "nlv$i" nomaster
	ip link add "nlw$i" mtu "$mtu" type veth peer name "nlx$i" mtu "$mtu"
	ip link set "nlx$i" master nlbr up
	ip link set "nlw$i" up
	: >"$state/$i/delay.log"
	setsid "$bin/netdelay" "nlv$i" "nlw$i" "$(us "$ms")" "$loss" "$(us "$jitter")" \
		</dev/null >"$state/$i/delay.log" 2>&1 &
	echo $! >"$state/$i/delay.pid"
	until grep -q ready "$state/$i/delay.log"; do
		kill -0 $! 2>/dev/null || die "delay: $(cat "$state/$i/delay.log")"
		sleep 0.01
	done
}

us() { awk "BEGIN { print $1 * 1000 }"; }

undelay() {
	local i=$1 pid
	[ -s "$state/$i/delay.pid" ] || return 0
	if pid=$(pid_of "$state/$i/delay.pid" netdelay); then kill "$pid"; fi
	rm -f "$state/$i/delay.pid"
	ip link del "nlw$i" 2>/dev/null || :
	ip link set "nlv$i" master nlbr
}

rate() {
	local i=$1 mbit=$2 burst
	burst=$((mbit * 500)) # bytes: four milliseconds' worth, and room for one GSO frame
	[ "$burst" -ge 70000 ] || burst=70000
	ip netns exec "nl$i" tc qdisc replace dev eth0 root tbf rate "${mbit}mbit" burst "$burst" latency 50ms
	tc qdisc replace dev "nlv$i" root tbf rate "${mbit}mbit" burst "$burst" latency 50ms
}

heal() {
	local i
	nft flush chain bridge netlab forward
	for i in $(hosts); do
		undelay "$i"
		ip link set "nlv$i" up
		tc qdisc del dev "nlv$i" root 2>/dev/null || :
		ip netns exec "nl$i" tc qdisc del dev eth0 root 2>/dev/null || :
	done
}

list() {
	local f
	[ -e "$state/n" ] || die "not up: netlab.sh up N"
	sed 1d "$state/hosts"
	nft list chain bridge netlab forward | grep drop || :
	for f in "$state"/*/delay.pid; do
		[ ! -e "$f" ] || echo "delay $(basename "$(dirname "$f")") by process $(cat "$f")"
	done
}

go_home "$@"
command=${1:-help}
shift || :
case $command in
up) up "$@" ;;
down) down ;;
heal) heal ;;
list) list ;;
exec)
	need_host "${1:-}"
	[ $# -ge 2 ] || usage
	run "$@"
	;;
partition)
	need_host "${1:-}" && need_host "${2:-}"
	drop ether saddr "$(mac "$1")" ether daddr "$(mac "$2")"
	drop ether saddr "$(mac "$2")" ether daddr "$(mac "$1")"
	;;
cut)
	need_host "${1:-}" && need_host "${2:-}"
	drop ether saddr "$(mac "$1")" ether daddr "$(mac "$2")"
	;;
delay | rate)
	need_host "${1:-}"
	[ $# -ge 2 ] || usage
	"$command" "$@"
	;;
loss)
	need_host "${1:-}"
	[ $# -eq 2 ] || usage
	drop ether daddr "$(mac "$1")" numgen random mod 10000 '<' "$(awk "BEGIN { print int($2 * 100) }")"
	;;
link)
	need_host "${1:-}"
	[ $# -eq 2 ] || usage
	ip link set "nlv$1" "$2"
	;;
*) usage ;;
esac
