#!/bin/bash
# device.sh LOGS: the kernels of package train/device on one NVIDIA GPU, and the loading of modules: every kernel against its
# specification, bit for bit, and its bandwidth beside that of a copy. Run in the folder that `make gpu-train` has built: it needs the
# driver alone. It takes about half a minute: $LIMIT seconds at most for each of its parts.
#   REHEARSE=1  on the library that GOCCL_CUDART_LIB names, as the fake one, without the bandwidth
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
[ $# = 1 ] || { echo "usage: $0 LOGS" >&2; exit 2; }
mkdir -p "$1" && logs=$(cd "$1" && pwd) || exit 1
cd "$here" || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cp device.test gpu.test "$tmp/" && chmod 755 "$tmp"/*.test || exit 1
failed=0
export GOCCL_TEST_GPU=1
[ -n "${REHEARSE:-}" ] || {
	nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used,compute_mode --format=csv,noheader 2>&1 | head -3
}

# part NAME LIBRARY COMMAND..: with the functions of LIBRARY.
part() {
	local name=$1 began=$SECONDS
	[ -z "$2" ] || export GOCCL_CUDART_LIB=$2
	shift 2
	if timeout -s QUIT -k 5 "${LIMIT:-60}" "$@" >"$logs/$name.log" 2>&1; then
		echo "ok      $name ($((SECONDS - began)) s)"
	else
		failed=1
		echo "FAILED  $name (exit $?): $logs/$name.log"
		grep -vE '^(=== |\s*--- (PASS|SKIP))' "$logs/$name.log" | sed '/^goroutine /,$d' | head -40 | cut -c1-300
	fi
}
modules='^Test(Kernel|KernelPlaces|KernelInGraph|LaunchErrors|LoadErrors|LaunchAllocatesNothing)$'
without='^Test(PTX|Sizes|Compiled)$' # the source is not here
library=${GOCCL_CUDART_LIB:-}
if [ -z "${REHEARSE:-}" ] && [ -z "$library" ]; then
	# The driver alone, then beside the runtime, where there is one.
	part modules-driver libcuda.so.1 "$tmp/gpu.test" -test.v -test.run "$modules"
	part kernels-driver libcuda.so.1 "$tmp/device.test" -test.v -test.skip "$without|^TestBandwidth$"
	library=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null)
	library=$(find "$library/nvidia" /usr/local/cuda*/lib64 -name 'libcudart.so.1?' 2>/dev/null | sort | tail -1)
	[ -n "$library" ] || library=libcuda.so.1
fi
part modules "$library" "$tmp/gpu.test" -test.v -test.run "$modules"
part kernels "$library" "$tmp/device.test" -test.v -test.skip "$without|^TestBandwidth$"
if [ -z "${REHEARSE:-}" ]; then
	part bandwidth "$library" "$tmp/device.test" -test.v -test.run '^TestBandwidth$'
	sed -n 's/^ *bandwidth_test.go:[0-9]*: //p' "$logs/bandwidth.log"
fi
echo "$SECONDS s; runtime ${library:-as found}; logs in $logs"
exit $failed
