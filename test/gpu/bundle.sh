#!/bin/sh
# bundle.sh DIR: builds DIR, which is all that a machine with NVIDIA GPUs needs beside its driver and libnccl.so.2 to run
# bench, the tests, the budget of a call and a loop in C over the same NCCL: DIR/run.sh runs them. No SDK is needed, here or there.
set -eu
[ $# = 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
export CGO_ENABLED=1
small='-s -w' # without what a debugger reads: a profile and a panic need none of it
go build -ldflags "$small" -tags nccl,rccl,oneccl,mpi -o "$out/bench" ./bench
go build -ldflags "$small" -tags nccl -o "$out/budget" ./test/gpu/budget
go test -c -ldflags "$small" -tags nccl,rccl -o "$out/native.test" ./ccl/internal/native
go test -c -ldflags "$small" -tags nccl,rccl -o "$out/gpu.test" ./gpu
go test -c -ldflags "$small" -tags nccl,rccl -o "$out/onegpu.test" ./test/gpu/onegpu
"${CC:-cc}" -std=gnu11 -O2 -Wall -Wextra -Werror -o "$out/loop" test/gpu/loop.c -ldl
mkdir -p "$out/testdata" # of gpu.test
cp gpu/testdata/kernels.ptx "$out/testdata/"
cp test/gpu/run.sh test/gpu/rank.sh test/gpu/torch_call.py "$out/"
chmod 755 "$out/run.sh" "$out/rank.sh"
for f in bench budget native.test gpu.test onegpu.test loop; do
	if ldd "$out/$f" | grep -vE 'linux-vdso|libc\.so|libm\.so|libdl\.so|libpthread\.so|ld-linux'; then
		echo "$out/$f needs more than the C library" >&2
		exit 1
	fi
done
echo "$out: copy it to the machine with the GPUs, and start run.sh there"
