#!/bin/bash
# Fetches NCCL's header and library, or the declarations of RCCL, pinned by version, into the cache, and prints the
# directory. What is there already is used.
#   fetch.sh nccl-2.18.3 | nccl-2.22.3 | nccl-2.27.3 | nccl-2.28.9 | nccl-2.32.3 | rocm-7.2.2 | rocm-10.0.0
# Needs python3 with pip; for RCCL, CPython 3.11.
set -euo pipefail
cache=${GOCCL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goccl}/nccl
dir=$cache/${1:-none}
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

case ${1:-} in
nccl-2.32.3)
	wheels nvidia-nccl-cu13==2.32.3
	mv "$tmp"/nvidia/nccl/{include,lib} "$tmp" ;;
nccl-2.18.3 | nccl-2.22.3 | nccl-2.27.3 | nccl-2.28.9)
	wheels "nvidia-nccl-cu12==${1#nccl-}"
	mv "$tmp"/nvidia/nccl/{include,lib} "$tmp" ;;
rocm-7.2.2)
	wheels hip-python==7.2.2.562.43
	# Some hundred MiB of other libraries' bindings.
	find "$tmp/hip" -name '*.so' -not -path '*/_util/*' -not -name 'hip.*' -not -name 'chip.*' -not -name '_hip_helpers.*' \
		-not -name 'rccl.*' -not -name 'crccl.*' -delete ;;
rocm-10.0.0)
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
