#!/bin/bash
# fetch.sh: fetches NVRTC, which compiles the kernels, and ptxas, which checks what it makes, into the cache, and prints the
# directory. What is there already is used. Needs python3 with pip (two wheels, 130 MB).
set -euo pipefail
version=12.9.86 # the last that compiles for compute capability 7.0
cache=${GOCCL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goccl}/nvrtc
dir=$cache/$version
[ -d "$dir" ] && { echo "$dir"; exit; }
mkdir -p "$cache"
tmp=$(mktemp -d "$cache/fetch-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
for attempt in 1 2 3; do
	timeout 300 python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --no-deps --no-compile \
		--only-binary :all: --upgrade --target "$tmp/site" "nvidia-cuda-nvrtc-cu12==$version" "nvidia-cuda-nvcc-cu12==$version" >&2 && break
	echo "fetch.sh: attempt $attempt failed" >&2
	[ $attempt = 3 ] && exit 1
done
find "$tmp/site" \( -name 'libnvrtc.so.*' -o -name 'libnvrtc-builtins.so.*' -o -name ptxas \) -exec mv {} "$tmp" \;
rm -rf "$tmp/site"
chmod 755 "$tmp" "$tmp/ptxas"
mv -T "$tmp" "$dir" 2>/dev/null || [ -d "$dir" ] # another process may have been faster
trap - EXIT
rm -rf "$tmp"
echo "$dir"
