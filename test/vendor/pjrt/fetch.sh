#!/bin/bash
# Fetches one of these into the cache and prints the directory. What is there already is used.
#   fetch.sh cpu-0.11.2 | cuda13-0.11.2 | header-0.83
# cpu: XLA's plugin for CPUs, pjrt_c_api_cpu_plugin.so (a wheel of 62 MB: python3 with pip). cuda13: jax's for CUDA, xla_cuda_plugin.so,
# with the ptxas and the libdevice that it calls (400 MB). header: pjrt_c_api.h of PJRT 0.83, from a Go module.
set -euo pipefail
cache=${GOCCL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goccl}/pjrt
dir=$cache/${1:-none}
[ -d "$dir" ] && { echo "$dir"; exit; }
mkdir -p "$cache"
tmp=$(mktemp -d "$cache/fetch-XXXXXX")
trap 'rm -rf "$tmp"' EXIT

# wheels NAME==VERSION..: unpacked below $tmp/site, without what they depend on.
wheels() {
	local attempt
	for attempt in 1 2 3; do
		timeout 300 python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --no-deps --no-compile \
			--only-binary :all: --upgrade --target "$tmp/site" "$@" >&2 && return
		echo "fetch.sh: attempt $attempt failed" >&2
	done
	return 1
}

case ${1:-} in
cpu-0.11.2)
	wheels lammps-jax-pjrt-cpu==0.11.2
	find "$tmp/site" -name pjrt_c_api_cpu_plugin.so -exec mv {} "$tmp" \;
	rm -rf "$tmp/site" ;;
cuda13-0.11.2)
	wheels jax-cuda13-pjrt==0.11.2 nvidia-cuda-nvcc nvidia-nvvm ;;
header-0.83)
	from=$(cd / && GOFLAGS=-mod=mod go mod download -json github.com/gomlx/go-xla@v0.1.4 | sed -n 's/.*"Dir": "\(.*\)",/\1/p')
	cp "$from/pkg/pjrt/pjrt_c_api.h" "$tmp" ;;
*)
	sed -n 's/^# *fetch.sh/usage: fetch.sh/p' "$0" >&2
	exit 2 ;;
esac
chmod 755 "$tmp"
mv -T "$tmp" "$dir" 2>/dev/null || [ -d "$dir" ] # another process may have been faster
trap - EXIT
rm -rf "$tmp"
echo "$dir"
