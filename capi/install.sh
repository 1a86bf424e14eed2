#!/bin/sh
# install.sh PREFIX builds and installs libgoccl.so, its header and its pkg-config file below DESTDIR/PREFIX. LIBDIR is
# where the library goes, PREFIX/lib if it is not set.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=${1:?install.sh PREFIX}
libdir=${LIBDIR:-$prefix/lib}
version=$(sed -n 's/^#define GOCCL_VERSION "\(.*\)"$/\1/p' "$here/../include/goccl.h")
lib=${DESTDIR:-}$libdir
mkdir -p "$lib/pkgconfig" "${DESTDIR:-}$prefix/include" "${DESTDIR:-}$prefix/share/licenses/goccl"
"$here/build.sh" "$lib/libgoccl.so.$version"
chmod 755 "$lib/libgoccl.so.$version"
ln -sf "libgoccl.so.$version" "$lib/libgoccl.so.1"
ln -sf libgoccl.so.1 "$lib/libgoccl.so"
install -m 644 "$here/../include/goccl.h" "${DESTDIR:-}$prefix/include/goccl.h"
install -m 644 "$here/../LICENSE" "${DESTDIR:-}$prefix/share/licenses/goccl/LICENSE"
cat >"$lib/pkgconfig/goccl.pc" <<END
prefix=$prefix
libdir=$libdir
includedir=\${prefix}/include

Name: goccl
Description: Collective communication for the ranks of a parallel job
URL: https://github.com/goccl/goccl
Version: $version
Libs: -L\${libdir} -lgoccl
Cflags: -I\${includedir}
END
