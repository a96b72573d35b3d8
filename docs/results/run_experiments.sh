#!/usr/bin/env bash
# The experiments behind docs/results, in pieces that go on where they were interrupted:
#
#   bash docs/results/run_experiments.sh STORAGE [PIECE ...]
#
# Without a piece, all of them: about ten hours on 2 cores that do nothing else.
set -euo pipefail
storage=$1
shift

compare() { # NAME SEEDS ENV CONTENDER [OPTION ...]
  local name=$1 seeds=$2 env=$3 contender=$4
  shift 4
  # Two processes evaluate, because the clock stands still meanwhile and the cores would.
  rllib compare --env "$env" --algos "$contender" --seeds "$seeds" --first-seed 100 \
    --budget-seconds 360 --set evaluation_num_env_runners=2 \
    --experiment-name "$name" --storage-path "$storage" "$@"
}

run_piece() {
  case $1 in
  hopper-impass) compare "$1" 5 Hopper-v5 IMPASS ;;
  hopper-noss) compare "$1" 5 Hopper-v5 IMPALANoSS ;;
  hopper-d4pg) compare "$1" 5 Hopper-v5 D4PG ;;
  hopper-ppo) compare "$1" 5 Hopper-v5 PPO ;;
  swimmer-impass) compare "$1" 3 Swimmer-v5 IMPASS ;;
  swimmer-noss) compare "$1" 3 Swimmer-v5 IMPALANoSS ;;
  swimmer-d4pg) compare "$1" 3 Swimmer-v5 D4PG ;;
  standup-impass) compare "$1" 3 HumanoidStandup-v5 IMPASS ;;
  standup-noss) compare "$1" 3 HumanoidStandup-v5 IMPALANoSS ;;
  standup-d4pg) compare "$1" 3 HumanoidStandup-v5 D4PG ;;
  striker-impass) compare "$1" 3 Striker-v0 IMPASS ;;
  striker-noss) compare "$1" 3 Striker-v0 IMPALANoSS ;;
  striker-d4pg) compare "$1" 3 Striker-v0 D4PG ;;
  *)
    echo "unknown piece: $1" >&2
    exit 2
    ;;
  esac
}

pieces=("$@")
if [ $# -eq 0 ]; then
  pieces=({hopper,swimmer,standup,striker}-{impass,noss,d4pg} hopper-ppo)
fi
for piece in "${pieces[@]}"; do
  run_piece "$piece"
done
