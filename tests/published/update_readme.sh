#!/bin/bash
# tests/published/update_readme.sh BIN
# Draws pictures/predicted-measured.svg and writes the table of errors of left-out sources into README.md, between its ERRORS
# marks, from all measured runs of ../shared. BIN is the folder of the programs (build/bin). About a minute on two cores.
set -euo pipefail

if [[ $# -ne 1 ]]; then
  echo "usage: tests/published/update_readme.sh BIN" >&2
  exit 2
fi
simulate=$(realpath "$1")/simulate
cd "$(dirname "$0")/../.."
runs=../shared/measured/training_runs.csv
if [[ ! -f $runs ]]; then
  echo "$runs is not here: README.md and its picture stay as they are" >&2
  exit 2
fi
export FORETRAIN_DATA=$PWD/data

"$simulate" check "$runs" --plot tests/published/pictures/predicted-measured.svg --quiet >/dev/null

table=$(mktemp)
trap 'rm -f "$table"' EXIT
"$simulate" calibrate "$runs" --leave-one-out --quiet | sed -n '/^step time, %/,$ s/^/    /p' | sed 's/ *$//' >"$table"
sed -i -e '/<!-- ERRORS-BEGIN -->/,/<!-- ERRORS-END -->/ {
  /<!-- ERRORS-BEGIN -->/ r '"$table"'
  /<!-- ERRORS-/! d
}' README.md
