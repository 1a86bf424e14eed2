#!/bin/sh
# train-bundle.sh DIR: builds DIR, which a machine with an NVIDIA GPU, python3, torch and jax's CUDA plugin needs to run DIR/train.sh;
# DIR/device.sh needs the driver alone.
set -eu
[ $# = 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
CGO_ENABLED=1 go build -trimpath -ldflags "-s -w" -tags xla,nccl -o "$out/gpt2" ./examples/gpt2
for pkg in gpu train/device; do
	CGO_ENABLED=1 go test -c -trimpath -ldflags "-s -w" -tags nccl,rccl -o "$out/$(basename $pkg).test" ./$pkg
done
mkdir -p "$out/testdata"
cp gpu/testdata/kernels.ptx "$out/testdata/"
cp test/gpu/device.sh test/gpu/train.sh test/gpu/turns.py test/gpu/torchgpt.py "$out/"
chmod 755 "$out/train.sh" "$out/device.sh"
for f in gpt2 gpu.test device.test; do
	if ldd "$out/$f" | grep -vE 'linux-vdso|libc\.so|libm\.so|libdl\.so|libpthread\.so|ld-linux'; then
		echo "$out/$f needs more than the C library" >&2
		exit 1
	fi
done
echo "$out: copy it to the machine with the GPU, and start train.sh LOGS there, and device.sh LOGS"
