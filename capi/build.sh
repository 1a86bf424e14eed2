#!/bin/sh
# build.sh FILE builds goccl's library for C as FILE. On Linux its SONAME is libgoccl.so.1, and it exports what
# libgoccl.map names.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
case ${1:?build.sh FILE} in /*) out=$1 ;; *) out=$PWD/$1 ;; esac
flags=
if [ "$(uname -s)" = Linux ]; then
	flags="-Wl,-soname,libgoccl.so.1 \"-Wl,--version-script=$here/libgoccl.map\""
fi
cd "$here"
CGO_ENABLED=1 ${GO:-go} build -trimpath -buildmode=c-shared -ldflags="-extldflags '$flags'" -o "$out" .
rm -f "${out%.*}.h" # Go's header: include/goccl.h is the library's
