#!/bin/bash
# tests/published/baselines/update.sh BIN REASON
# Writes the errors of predictions as they are now into the baselines beside this script: of data/measured/runs.csv and,
# where ../shared is, of all its measured runs. BIN is the folder of the programs (build/bin).
set -euo pipefail

if [[ $# -ne 2 ]]; then
  echo "usage: tests/published/baselines/update.sh BIN REASON" >&2
  exit 2
fi
programs=$(realpath "$1")
reason=$2
cd "$(dirname "$0")/../../.."
export FORETRAIN_DATA=$PWD/data

update() {  # TABLE NAME
  if [[ ! -f $1 ]]; then
    echo "$1 is not here: the baseline $2.json stays as it is" >&2
    return
  fi
  "$programs/simulate" check "$1" --baseline "tests/published/baselines/$2.json" --update --reason "$reason" --quiet >/dev/null
}

update data/measured/runs.csv runs
update ../shared/measured/training_runs.csv training_runs
