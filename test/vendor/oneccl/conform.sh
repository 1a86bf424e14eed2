#!/bin/bash
# conform.sh INCLUDE: compares include/goneccl.h with the oneCCL header in INCLUDE, then with planted errors, each of
# which must be found.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../.. header=${1:?usage: conform.sh DIRECTORY_OF_ONEAPI}

# compile TABLE_DIR: nothing where the table in TABLE_DIR agrees.
compile() {
	local name defined=()
	for name in $(sed -n -E 's/^\tX\([01], .*, ([A-Z][A-Za-z]+), \(.*/\1/p' "$1/goneccl.h"); do
		if grep -qE "\boneccl$name\(" <<<"$declared"; then defined+=("-DHAVE_oneccl$name=1"); fi
	done
	[ ${#defined[@]} -ge 15 ] || { echo "conform.sh: only ${#defined[@]} functions of goneccl.h are in the header" >&2; return 1; }
	count=${#defined[@]}
	"${CXX:-c++}" -std=c++17 -fsyntax-only -I"$1" -isystem "$header" "${defined[@]}" "$here/conform.cpp"
}

declared=$(echo '#include <oneapi/ccl.h>' | "${CXX:-c++}" -std=c++17 -E -P -x c++ -isystem "$header" -)
compile "$root/include"
functions=$count

planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
# plant SED: the table with an error, which must be refused.
plant() {
	sed "$1" "$root/include/goneccl.h" >"$planted/goneccl.h"
	! cmp -s "$planted/goneccl.h" "$root/include/goneccl.h" || { echo "conform.sh: '$1' plants no error" >&2; exit 1; }
	if compile "$planted" 2>/dev/null; then
		echo "conform.sh: the error planted by '$1' was not found" >&2
		exit 1
	fi
}
plant '/, Reduce, /s/int, o_comm/o_comm/'                # a parameter is missing
plant '/, Send, /s/size_t/int/'                          # of another type
plant '/, GetLastError, /s/const char \*/o_res/'         # another result
plant 's/GONECCL_SUM, GONECCL_PROD/GONECCL_PROD, GONECCL_SUM/' # enums in another order
plant 's/GONECCL_INT8, GONECCL_UINT8/GONECCL_UINT8, GONECCL_INT8/'
plant 's/GONECCL_FAILURE_GPU, /GONECCL_EXTRA, GONECCL_FAILURE_GPU, /'
plant 's/X(1, o_res, Send/X(1, o_res, SendIt/'           # a function that there is not
echo "conform.sh: $functions functions and all enums agree with $header; 7 planted errors were found"
