#!/bin/bash
# Which packages each platform and set of tags adds files to, so that static checks look at every file, and at few
# packages twice.
#   test/platforms.sh [all]    a line each: GOOS GOARCH CGO_ENABLED TAGS PACKAGE..; TAGS is "-" where there are none
# A package is in a line if it has a file there that it has in no line before. What all platforms have in common is
# looked at once: where a platform lacks a file, and has none of its own for it, the most that is missed is a function
# that only that file used. That it compiles, make cross finds. Each line costs the checks what a package needs, for
# that platform anew. The line with cgo is for a machine with a C compiler; all prints it in any case.
set -eu -o pipefail
engines=nccl,rccl,oneccl,mpi,xla
variants() {
	local tags platform
	for tags in - noasm; do
		for platform in linux/amd64 darwin/arm64 windows/amd64 linux/arm64; do
			echo "${platform%/*} ${platform#*/} 0 $tags"
		done
	done
	for tags in fault nocheck; do echo "linux amd64 0 $tags"; done
	if [ "${1:-}" = all ] || command -v cc >/dev/null; then
		echo "linux amd64 1 $engines"
	fi
	echo "linux amd64 0 $engines"
}
files='{{range .GoFiles}} {{.}}{{end}}{{range .CgoFiles}} {{.}}{{end}}{{range .SFiles}} {{.}}{{end}}{{range .CFiles}} {{.}}{{end}}'
files+='{{range .HFiles}} {{.}}{{end}}{{range .TestGoFiles}} {{.}}{{end}}{{range .XTestGoFiles}} {{.}}{{end}}'
variants "$@" | while read -r os arch cgo tags; do
	GOOS=$os GOARCH=$arch CGO_ENABLED=$cgo go list -e -tags "${tags#-}" \
		-f "$os $arch $cgo $tags{{if or .GoFiles .CgoFiles .TestGoFiles .XTestGoFiles}} {{.ImportPath}}$files{{end}}" ./...
done | awk '
	{
		variant = $1 " " $2 " " $3 " " $4
		adds = 0
		for (i = 6; i <= NF; i++) if (!seen[$5 "/" $i]++) adds = 1
	}
	adds {
		if (variant != last && last != "") print line
		if (variant != last) line = last = variant
		line = line " " $5
	}
	END { if (last != "") print line }'
