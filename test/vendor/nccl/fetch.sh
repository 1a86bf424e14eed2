#!/bin/bash
# Fetches a version of NCCL or RCCL into the cache and prints the directory. What is there already is used.
#   fetch.sh nccl-2.18.3 | nccl-2.23.4 | nccl-2.27.3 | nccl-2.28.9 | nccl-2.30.7 | nccl-2.32.3 | rocm-7.2.2 | rocm-10.0.0 | rccl-5.4.3 | rccl-7.2.4
# nccl: the header and the library, from wheels (python3 with pip). rocm: the declarations of RCCL in AMD's bindings for
# Python (CPython 3.11). rccl: Debian's packages of that version of ROCm, with all that they depend on: include/, and lib/
# with a dynamic loader of its own, for they need a newer C library than Debian 12 has (apt-get, dpkg, and the package lists
# of some Debian). Exit status 3: Debian has that version no longer.
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

# debian SUITE[,SUITE] PACKAGE=VERSION PACKAGE=VERSION..: the first with what it depends on, of the others the files alone.
# Neither this system's packages nor its lists are touched; the mirror is the one that it has.
debian() {
	local suite site options=() name state=$tmp/state
	site=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 'Component: main' | head -1)
	[ -n "$site" ] || { echo "fetch.sh: apt-get knows no mirror of Debian here: run apt-get update on a Debian system" >&2; return 1; }
	mkdir -p "$state"/{lists/partial,archives/partial}
	touch "$state/status"
	for suite in ${1//,/ }; do
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $suite main" >>"$state/sources"
	done
	# What is not of ROCm comes from the first suite.
	printf 'Package: %s\nPin: release a=experimental\nPin-Priority: %d\n\n' \
		'librccl* libamdhip* libhsa* libamd-comgr* librocm*' 990 '*' 1 >"$state/preferences"
	for name in Dir::Etc::SourceList="$state/sources" Dir::Etc::SourceParts=/dev/null Dir::Etc::Preferences="$state/preferences" \
		Dir::Etc::PreferencesParts=/dev/null Dir::State="$state" Dir::State::status="$state/status" Dir::Cache="$state" \
		APT::Architecture=amd64 APT::Sandbox::User=root Acquire::Languages=none Acquire::Retries=3; do
		options+=(-o "$name")
	done
	shift
	timeout 120 apt-get -qq "${options[@]}" update >&2 || return
	if [ "$suite" = experimental ]; then # whose packages come and go
		for name; do
			apt-cache "${options[@]}" madison "${name%%=*}" | awk '{ print $3 }' | grep -q "^${name#*=}" ||
				{ echo "fetch.sh: Debian has no $name any more" >&2; exit 3; }
		done
		timeout 60 apt-get -qq "${options[@]}" install -y --simulate --no-install-recommends "$1*" >/dev/null ||
			{ echo "fetch.sh: what $1 depends on is not in Debian's sid at the moment" >&2; exit 3; }
	fi
	timeout 300 apt-get -qq "${options[@]}" install -y --download-only --no-install-recommends "$1*" >/dev/null &&
		(cd "$state/archives" && timeout 120 apt-get -qq "${options[@]}" download "${@/%/*}" >/dev/null) || return
	for name in "$state"/archives/*.deb; do
		dpkg -x "$name" "$state/root" || return
	done
	mv "$state/root/usr/lib/x86_64-linux-gnu" "$tmp/lib"
	mv "$state/root/usr/include" "$tmp/include"
	rm -rf "$state"
}

case ${1:-} in
rccl-5.4.3)
	debian trixie librccl1=5.4.3 librccl-dev=5.4.3 libamdhip64-dev=5.7.1 ;;
rccl-7.2.4)
	debian sid,experimental librccl1=7.2.4 librccl-dev=7.2.4 libamdhip64-dev=7.2.4 ;;
nccl-2.32.3)
	wheels nvidia-nccl-cu13==2.32.3
	mv "$tmp"/nvidia/nccl/{include,lib} "$tmp" ;;
nccl-2.18.3 | nccl-2.23.4 | nccl-2.27.3 | nccl-2.28.9 | nccl-2.30.7)
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
