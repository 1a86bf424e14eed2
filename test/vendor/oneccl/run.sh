#!/bin/bash
# Runs the oneCCL engine on the real thing, without a GPU: fetch.sh has what it runs on.
#   run.sh conform         goccl's declarations against the headers of both versions
#   run.sh cpu VERSION     the CPU plugin: the engine's tests, and bench with 2, 3 and 4 processes
#                          and, with Intel MPI's wheel, over MPI
#   run.sh sycl            SYCL queues and memory on SYCL's CPU device, 2 processes
#   run.sh                 all of it, with 2021.17.2 and 2022.2.0
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../../.."
export CGO_ENABLED=1 FI_PROVIDER=${FI_PROVIDER:-tcp}
# With no other interface than lo, neither oneCCL nor libfabric finds one by itself.
[ "$(wc -l </proc/net/route)" -gt 1 ] || export CCL_KVS_IFACE=lo FI_TCP_IFACE=lo
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT

# tests ARGS..: go test, and a report of what was skipped.
tests() {
	timeout 900 go test -tags oneccl -json -count 1 "$@" | go run ./test/skipreport
}

# bench LAUNCHER.. -- FLAGS..: bench, which must report no wrong value.
bench() {
	local launcher=()
	while [ "$1" != -- ]; do launcher+=("$1") && shift; done
	shift
	echo "bench ${launcher[*]} $*"
	timeout 300 "${launcher[@]}" "$bin/${program:-bench}" -backend oneccl "$@" >"$bin/out" 2>&1 || { cat "$bin/out"; return 1; }
	grep -q '^# Out of bounds values : 0 OK' "$bin/out" || { cat "$bin/out"; return 1; }
}

conform() {
	local version
	for version in 2021.17.2 2022.2.0; do
		"$here/conform.sh" "$("$here/fetch.sh" cpu "$version")/include"
	done
}

cpu() {
	local dir n launcher
	dir=$("$here/fetch.sh" cpu "$1")
	export GOCCL_ONECCL_LIB=$dir/libccl.so.2
	unset LD_LIBRARY_PATH GOCCL_XPU_LIB ONEAPI_DEVICE_SELECTOR CCL_PLUGIN
	tests ./ccl/internal/native/oneccl
	go build -tags oneccl -o "$bin/bench" ./bench
	for n in 2 3 4; do
		bench -- -np $n -op all -b 8 -e 512K -f 256 -n 3
	done
	bench -- -np 2 -op allreduce,reduce,reducescatter -o all -d all -b 4K -e 4K -n 2
	for launcher in mpiexec.mpich 'mpiexec.openmpi --allow-run-as-root --oversubscribe'; do
		# shellcheck disable=SC2086 # a command with its flags
		if command -v ${launcher%% *} >/dev/null; then
			bench $launcher -n 2 -- -op all -b 8 -e 8K -f 64 -n 3
		else
			echo "run.sh: NOT RUN: no ${launcher%% *} here (Debian: apt-get install mpich openmpi-bin)"
			[ "${GOCCL_REQUIRE:-}" != all ]
		fi
	done
	if timeout 60 "$bin/bench" -backend oneccl -t 2 >"$bin/out" 2>&1 || ! grep -q 'one rank per process' "$bin/out"; then
		echo "run.sh: two ranks in a process were not refused" >&2
		cat "$bin/out"
		return 1
	fi
	(over_mpi)
}

# over_mpi: with CCL_ATL_TRANSPORT=mpi oneCCL moves data over Intel MPI, which Join has initialised. A build without MPI is refused
# where oneCCL would abort.
over_mpi() {
	local name version mpi
	test/mpi/fetch.sh
	read -r name version _ < <(grep '^impi_rt ' test/mpi/wheels)
	mpi=${GOCCL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goccl}/mpi/$name-$version/$name-$version.data/data
	go build -tags oneccl,mpi -o "$bin/bench-mpi" ./bench
	export LD_LIBRARY_PATH=$mpi/lib PATH=$mpi/bin:$PATH I_MPI_FABRICS=shm CCL_ATL_TRANSPORT=mpi
	program=bench-mpi bench mpiexec -n 2 -- -op all -b 8 -e 512K -f 256 -n 3
	CCL_LOG_LEVEL=info program=bench-mpi bench mpiexec -n 2 -- -op allreduce -b 8 -e 8 -n 1
	grep -q 'MPI was initialized externally' "$bin/out" || { cat "$bin/out"; return 1; }
	refused 'PMI connection serves once' mpiexec -n 2 "$bin/bench"
	refused 'were not started by a launcher with MPI' "$bin/bench-mpi" -np 2
}

# refused TEXT COMMAND..: a bench that must fail with that text.
refused() {
	local text=$1
	shift
	echo "$* is refused: $text"
	if timeout 60 "$@" -backend oneccl -op allreduce -b 8 -e 8 -n 1 >"$bin/out" 2>&1 || ! grep -q "$text" "$bin/out"; then
		cat "$bin/out"
		return 1
	fi
}

sycl() {
	local dir
	dir=$("$here/fetch.sh" sycl)
	export SYCL_ROOT=$dir GOCCL_XPU_LIB GOCCL_ONECCL_LIB=$dir/lib/libccl.so.2 LD_LIBRARY_PATH=$dir/lib
	# The device is asked for by name, since it is no GPU; and its driver, since the wheels say it in no usable way.
	export ONEAPI_DEVICE_SELECTOR=opencl:cpu OCL_ICD_FILENAMES=$dir/lib/libintelocl.so
	unset CCL_PLUGIN
	GOCCL_XPU_LIB=$(xpu/shim/build.sh "$dir/shim")
	c++ -std=c++17 -isystem "$dir/include" -o "$bin/late" "$here/late.cpp" "$(find "$dir/lib" -maxdepth 1 -name 'libsycl.so.[0-9]' | sort -V | tail -1)"
	"$bin/late"
	tests ./xpu ./internal/sycl
	GOCCL_TEST_RANKS=2 tests -run 'Product|Nil' ./ccl/internal/native/oneccl # host memory beside a device
	GOCCL_TEST_RANKS=2 GOCCL_TEST_DEVICE=1 tests -run 'Product' ./ccl/internal/native/oneccl
	go build -tags oneccl -o "$bin/bench" ./bench
	bench -- -np 2 -device 0 -mem device -op all -b 8 -e 8K -f 64 -n 2 # both on the one device
}

case ${1:-} in
conform) conform ;;
cpu) cpu "${2:?which version}" ;;
sycl) sycl ;;
'')
	for what in conform 'cpu 2021.17.2' 'cpu 2022.2.0' sycl; do
		start=$SECONDS
		echo "=== oneccl $what"
		# shellcheck disable=SC2086 # words
		"$0" $what
		echo "=== oneccl $what: $((SECONDS - start)) s"
	done
	;;
*) sed -n '2,6s/^# \?//p' "$0" >&2; exit 2 ;;
esac
