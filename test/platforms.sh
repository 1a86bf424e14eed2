#!/bin/bash
# Which packages each platform and set of tags changes, so that static checks look at everything, and at nothing twice.
#   test/platforms.sh [all]    a line each: GOOS GOARCH CGO_ENABLED TAGS PACKAGE..; TAGS is "-" where there are none
# A package is in a line if it consists of files that no line before has put together in the same way. The lines with cgo are
# for a machine with a C compiler; all prints them in any case.
set -eu -o pipefail
engines=nccl,rccl,oneccl,mpi,xla
variants() {
	local tags platform
	for tags in - noasm; do
		for platform in linux/amd64 linux/arm64 darwin/arm64 windows/amd64; do
			echo "${platform%/*} ${platform#*/} 0 $tags"
		done
	done
	for tags in fault nocheck $engines; do echo "linux amd64 0 $tags"; done
	if [ "${1:-}" = all ] || command -v cc >/dev/null; then
		for tags in - $engines; do echo "linux amd64 1 $tags"; done
	fi
}
files='{{.GoFiles}}{{.CgoFiles}}{{.SFiles}}{{.CFiles}}{{.HFiles}}{{.TestGoFiles}}{{.XTestGoFiles}}'
variants "$@" | while read -r os arch cgo tags; do
	GOOS=$os GOARCH=$arch CGO_ENABLED=$cgo go list -e -tags "${tags#-}" \
		-f "$os $arch $cgo $tags{{if or .GoFiles .CgoFiles .TestGoFiles .XTestGoFiles}} {{.ImportPath}} $files{{end}}" ./...
done | awk '
	{ variant = $1 " " $2 " " $3 " " $4; made = substr($0, length(variant) + 1) }
	made != "" && !seen[made]++ {
		if (variant != last && last != "") print line
		if (variant != last) line = last = variant
		line = line " " $5
	}
	END { if (last != "") print line }'
