#!/bin/bash
# Installs into a folder, moves it and asks `simulate` a question there; then the same from the .tgz, and looks into the
# .deb. The answer must come from the data beside the program, neither from the environment nor from the source tree.
#   install_test.sh CMAKE CPACK BUILD_FOLDER
set -euo pipefail
cmake=$1 cpack=$2 build=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# The CSV that `simulate` of a prefix gives, with an empty environment and from a folder that holds nothing.
ask() {
  (cd "$work/empty" && env -i "$1/bin/simulate" --model tiny-llama --gpus 2 --plan "tp=2" --no-better-plans --format csv)
}

# Fails unless the prefix answers, from its own data.
check_prefix() {
  local prefix=$1 own=$1/share/foretrain/data
  for file in bin/plan bin/simulate share/doc/foretrain/{LICENSE,NOTICE,README.md}; do
    [[ -e $prefix/$file ]] || fail "$prefix/$file is missing"
  done
  local before after
  before=$(ask "$prefix") || fail "simulate of $prefix: exit status $?"
  [[ $before == *"tp=2"* ]] || fail "simulate of $prefix printed: $before"

  mv "$own/models/tiny-llama.json" "$own/models/renamed-llama.json"
  if after=$(ask "$prefix" 2>&1); then
    fail "$prefix answers from data that are not its own"
  fi
  [[ $after == *renamed-llama* || $after == *"not known"* ]] || fail "simulate of $prefix printed: $after"
  mv "$own/models/renamed-llama.json" "$own/models/tiny-llama.json"
}

mkdir "$work/empty"
"$cmake" --install "$build" --strip --prefix "$work/installed" >"$work/log" || fail "$(<"$work/log")"
mv "$work/installed" "$work/moved"
check_prefix "$work/moved"

"$cpack" --config "$build/CPackConfig.cmake" -G TGZ -B "$work/packages" >"$work/log" || fail "$(<"$work/log")"
mkdir "$work/unpacked"
tar -xzf "$work"/packages/foretrain-*.tgz -C "$work/unpacked" --strip-components=1
check_prefix "$work/unpacked"

if ! command -v dpkg-shlibdeps >/dev/null; then
  echo "No dpkg-shlibdeps: the .deb is not tested"
  exit 0
fi
"$cpack" --config "$build/CPackConfig.cmake" -G DEB -B "$work/packages" >"$work/log" || fail "$(<"$work/log")"
mkdir "$work/deb"
dpkg-deb --extract "$work"/packages/foretrain_*.deb "$work/deb"
check_prefix "$work/deb/usr"
depends=$(dpkg-deb --field "$work"/packages/foretrain_*.deb Depends)
for library in libc6 libstdc++6 libtbb12; do
  [[ $depends == *"$library"* ]] || fail "the .deb depends on \"$depends\", without $library"
done
