#!/bin/sh
# Compiles the interpreter of a tree, from the static library of the Python that freezes it. The same source, library and
# compiler give the same bytes.
# Usage: sh packaging/interpreter/build.sh PYTHON OUTPUT
set -eu
[ $# -eq 2 ] || { echo "usage: sh $0 PYTHON OUTPUT" >&2 && exit 2; }
python=$1
case $2 in
/*) output=$2 ;;
*) output=$PWD/$2 ;;
esac
told() { "$python" -c "import sys, sysconfig; print($1)"; }
headers=$(told 'sysconfig.get_path("include")')
library=$(told 'sysconfig.get_config_var("LIBPL") + "/" + sysconfig.get_config_var("LIBRARY")')
words='" ".join(sysconfig.get_config_var(each) or "" for each in ("LIBS", "SYSLIBS", "MODLIBS")).split()'
# No place of the machine that builds.
linked=$(told "' '.join(each for each in $words if not each.startswith(('-L', '-Wl,-rpath')))")
version=$(told '"python%d.%d" % sys.version_info[:2]')
cd "$(dirname "$0")"
mkdir -p "$(dirname "$output")"
# Modules with machine code find the interpreter's functions in it: all of the library, exported. Libraries are searched in
# the tree first, for all that it loads, and before anything that the environment says (DT_RPATH).
# shellcheck disable=SC2086,SC2016
exec ${CC:-gcc} -std=c11 -O2 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror -DNDEBUG -fno-ident -fno-pie -no-pie -s \
    -isystem "$headers" "-DLIBRARY=\"$version\"" "-ffile-prefix-map=$PWD=." -o "$output" interpreter.c \
    -Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,relro -Wl,-z,now -Wl,--export-dynamic \
    -Wl,--disable-new-dtags '-Wl,-rpath,$ORIGIN/_internal/libc:$ORIGIN/_internal' \
    -Wl,--whole-archive "$library" -Wl,--no-whole-archive $linked
