#!/bin/bash
# Fetches a runtime's headers (and of CUDA the library), pinned by version, into the cache, and prints the directory. What is
# there already is used.
#   fetch.sh cuda-13.5.37 | cuda-12.9.79 | cuda-12.1.105 | hip-6.2.0 | hip-7.2.2 | hip-10.0.0
# Needs python3 with pip; for HIP, CPython 3.11.
set -euo pipefail
cache=${GOCCL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goccl}/cudart
dir=$cache/$1
[ -d "$dir" ] && { echo "$dir"; exit; }
mkdir -p "$cache"
tmp=$(mktemp -d "$cache/fetch-XXXXXX")
trap 'rm -rf "$tmp"' EXIT

# wheels NAME==VERSION..: without what they depend on.
wheels() {
	local attempt
	for attempt in 1 2 3; do
		timeout 300 python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --no-deps --no-compile \
			--only-binary :all: --upgrade --target "$tmp" "$@" >&2 && return
		echo "fetch.sh: attempt $attempt failed" >&2
	done
	return 1
}

case $1 in
cuda-13.5.37) # the headers need all three
	wheels nvidia-cuda-runtime==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
	mv "$tmp"/nvidia/cu13/* "$tmp" ;;
cuda-12.9.79 | cuda-12.1.105)
	wheels "nvidia-cuda-runtime-cu12==${1#cuda-}"
	mv "$tmp"/nvidia/cuda_runtime/* "$tmp" ;;
hip-6.2.0 | hip-7.2.2)
	version=$(case $1 in *6.2.0) echo 6.2.0.499.16 ;; *) echo 7.2.2.562.43 ;; esac)
	wheels "hip-python==$version"
	# Some hundred MiB of other libraries' bindings.
	find "$tmp/hip" -name '*.so' -not -path '*/_util/*' -not -name 'hip.*' -not -name 'chip.*' -not -name '_hip_helpers.*' -delete ;;
hip-10.0.0)
	wheels rocm-bindings-core==10.0.0.0.1.2 rocm-bindings-hip==10.0.0.0.1.2 rocm-bindings-systems==10.0.0.0.1.2 ;;
*)
	sed -n 's/^# *fetch.sh/usage: fetch.sh/p' "$0" >&2
	exit 2 ;;
esac
chmod 755 "$tmp"
mv -T "$tmp" "$dir" 2>/dev/null || [ -d "$dir" ] # another process may have been faster
trap - EXIT
rm -rf "$tmp"
echo "$dir"
