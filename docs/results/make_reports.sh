#!/usr/bin/env bash
# The reports in this folder, from the tables that are there and the pieces in STORAGE:
#
#   bash docs/results/make_reports.sh STORAGE
#
# Pieces may run on several machines, one after the other: what STORAGE lacks of a report is
# taken from its table, and a report of which it has nothing stays as it is.
set -euo pipefail
here=$(dirname "$0")
storage=${1:?"usage: make_reports.sh STORAGE"}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

report() { # NAME PIECE...
  local name=$1 places=()
  shift
  for piece in "$@"; do
    if [ -d "$storage/$piece" ]; then places+=("$storage/$piece"); fi
  done
  if [ ${#places[@]} -eq 0 ]; then return; fi
  if [ -f "$here/$name/results.csv" ]; then places+=("$here/$name/results.csv"); fi
  rllib report "${places[@]}" --out "$made/$name"
  # Git keeps what is small and can be compared: no PNG, and no second text of the page.
  rm -rf "${here:?}/$name"
  mkdir -p "$here/$name/figures"
  cp "$made/$name"/{index.html,results.csv,scores.csv} "$here/$name"
  cp "$made/$name"/figures/*.svg "$here/$name/figures"
}

report report {hopper,swimmer,standup,striker}-{impass,noss,d4pg} \
  hopper-{ppo,stacked-d4pg,paper}
report stacked_states stacked-states
report ablations ablations sigma
report actors actors
