#!/bin/bash
# run_golden.sh BIN FILE.golden [--update]
#
# A golden file is a command after "$ " and the whole of what it prints. Runs the command with BIN first on the path and
# compares; with --update writes what it prints now (then say in the commit why it changed).
set -euo pipefail
bin=$1 file=$2
command=$(head -n 1 "$file")
command=${command#\$ }
actual=$(mktemp)
trap 'rm -f "$actual"' EXIT
{
  printf '$ %s\n' "$command"
  PATH="$bin:$PATH" bash -c "$command" 2>&1 || printf 'exit status %s\n' $?
} > "$actual"
if [[ "${3:-}" == --update ]]; then
  cp "$actual" "$file"
else
  diff -u "$file" "$actual"
fi
