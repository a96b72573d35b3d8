#!/usr/bin/env bash
# The experiments behind docs/results, in pieces that go on where they were interrupted:
#
#   bash docs/results/run_experiments.sh STORAGE [PIECE ...]
#
# Without a piece, all of them: by the pieces run so far, about 8 hours on 2 cores.
set -euo pipefail
here=$(dirname "$0")
storage=${1:?"usage: run_experiments.sh STORAGE [PIECE ...]"}
shift

# Two processes evaluate, because the clock stands still meanwhile and the cores would.
common=(--set evaluation_num_env_runners=2 --storage-path "$storage")

compare() { # NAME SEEDS ENV CONTENDER [SECONDS [FIRST_SEED]]
  rllib compare --experiment-name "$1" --seeds "$2" --env "$3" --algos "$4" \
    --budget-seconds "${5:-360}" --first-seed "${6:-100}" "${common[@]}"
}

run_piece() {
  case $1 in
  hopper-impass) compare "$1" 5 Hopper-v5 IMPASS ;;
  hopper-noss) compare "$1" 5 Hopper-v5 IMPALANoSS ;;
  # Seeds 100 and 101 were looked at while D4PG's settings were still being chosen.
  hopper-d4pg) compare "$1" 5 Hopper-v5 D4PG 360 200 ;;
  hopper-ppo) compare "$1" 5 Hopper-v5 "$here/hopper_ppo.yaml" ;;
  swimmer-impass) compare "$1" 3 Swimmer-v5 IMPASS ;;
  swimmer-noss) compare "$1" 3 Swimmer-v5 IMPALANoSS ;;
  swimmer-d4pg) compare "$1" 3 Swimmer-v5 D4PG ;;
  standup-impass) compare "$1" 3 HumanoidStandup-v5 IMPASS ;;
  standup-noss) compare "$1" 3 HumanoidStandup-v5 IMPALANoSS ;;
  standup-d4pg) compare "$1" 3 HumanoidStandup-v5 D4PG ;;
  striker-impass) compare "$1" 3 Striker-v0 IMPASS ;;
  striker-noss) compare "$1" 3 Striker-v0 IMPALANoSS ;;
  striker-d4pg) compare "$1" 3 Striker-v0 D4PG ;;
  hopper-stacked-d4pg)
    compare "$1" 3 Hopper-v5 "$here/../../tuned_examples/d4pg/hopper_stacked_d4pg.yaml"
    ;;
  hopper-paper)
    compare "$1" 3 Hopper-v5 "$here/../../tuned_examples/impass/hopper_paper_impass.yaml"
    ;;
  stacked-states) compare "$1" 3 HopperPositions-v0 "$here/stacked_states.yaml" 240 ;;
  ablations) compare "$1" 2 Hopper-v5 "$here/ablations.yaml" 180 ;;
  actors)
    rllib actors --experiment-name "$1" --env Hopper-v5 --counts 1,2,4,8 --seeds 2 \
      --budget-seconds 180 --first-seed 100 "${common[@]}"
    ;;
  *)
    echo "unknown piece: $1" >&2
    exit 2
    ;;
  esac
}

pieces=("$@")
if [ $# -eq 0 ]; then
  pieces=({hopper,swimmer,standup,striker}-{impass,noss,d4pg} hopper-ppo
    hopper-stacked-d4pg hopper-paper stacked-states ablations actors)
fi
for piece in "${pieces[@]}"; do
  run_piece "$piece"
done
