#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests that take too long for a test run. First a thousand crashes under load of each
# kind, a million increments in each way of the counter service, and twenty minutes of a cluster of
# processes under fire, however long they take. Then it spends the given time: half on the fuzzers,
# a third on the tests with new random seeds, the rest on rounds of the demo. It runs those of these
# that exist. It ends with status 1 at the first finding, and prints how to repeat it.
#
# After that, however long it takes, clang's analyzer checks the paths through every function, and
# tests/mutants checks that the tests still find its faults.
#
#   tests/nightly.sh --minutes 60
#
# Randomised tests read their seeds through testing/include/pv2/testing/seeds.h.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  echo "usage: tests/nightly.sh --minutes N   (N is a whole number, at least 1)" >&2
  exit 2
}
[[ $# -eq 2 && $1 == --minutes && $2 =~ ^[1-9][0-9]*$ ]] || usage
seconds=$(($2 * 60))

cmake/install_packages.sh --ci
cmake/build_preset.sh release all
cmake/build_preset.sh fuzz fuzzers
shopt -s nullglob
if [[ -x build/release/tests/crash_tests ]]; then
  seed=$((RANDOM * 32768 + RANDOM))
  echo "== a thousand crashes of each kind, from seed $seed"
  export PV2_CRASH_ROUNDS=1000
  if ! PV2_TEST_SEED=$seed build/release/tests/crash_tests; then
    echo "nightly: repeat with PV2_TEST_SEED=$seed PV2_CRASH_ROUNDS=1000 and crash_tests"
    exit 1
  fi
  unset PV2_CRASH_ROUNDS
fi

service=build/release/examples/counter_service
if [[ -x $service ]]; then
  seed=$((RANDOM * 32768 + RANDOM + 1))
  for way in nonce session engine; do
    echo "== a million increments by $way, from seed $seed"
    campaign=(run --way "$way" --increments 1000000 --clients 16 --kills 50 --seed "$seed")
    if ! "$service" "${campaign[@]}"; then
      echo "nightly: repeat with $service ${campaign[*]}"
      exit 1
    fi
  done
fi

under_fire=build/release/examples/cluster_campaign
if [[ -x $under_fire ]]; then
  seed=$((RANDOM * 30 + 1))
  echo "== twenty minutes of a cluster of processes under fire, from seed $seed"
  if ! "$under_fire" --minutes 20 --seed "$seed"; then
    echo "nightly: repeat with $under_fire --minutes 20 --seed $seed"
    exit 1
  fi
fi

# The time begins here: it does not include the build, nor what is counted: crashes, increments.
SECONDS=0

fuzzers=()
for file in build/fuzz/fuzz/*_fuzz; do
  if [[ -x $file ]]; then fuzzers+=("$file"); fi
done
if ((${#fuzzers[@]} > 0)); then
  each=$((seconds / 2 / ${#fuzzers[@]}))
  for fuzzer in "${fuzzers[@]}"; do
    name=${fuzzer##*/}
    corpus=build/fuzz/corpus/$name  # Kept, so that the next night begins where this one ended.
    mkdir -p "$corpus" build/fuzz/findings
    inputs=("$corpus")
    if [[ -d tests/fuzz/corpus/$name ]]; then inputs+=("tests/fuzz/corpus/$name"); fi
    echo "== fuzzing $name for $each s"
    "$fuzzer" -max_total_time="$((each > 0 ? each : 1))" -print_final_stats=1 -verbosity=0 \
      -artifact_prefix="build/fuzz/findings/$name-" "${inputs[@]}"
  done
fi

# A thousand seeds of the engine take a few seconds, a hundred of the procedures as long. Each round
# of the latter has three tests, and goes on where the last one ended, so that every pair has its
# turns.
simulated=0
simulation=build/release/tests/simulation_tests
met=0
stories=0
clusters=build/release/tests/cluster_tests
pairs=build/release/tests/procedures_tests
# simulate <seed> <seeds> <program> <tests>...
simulate() {
  if PV2_TEST_SEED=$1 PV2_TEST_SEEDS=$2 "${@:3}" >build/nightly_simulation.log 2>&1; then return; fi
  cat build/nightly_simulation.log
  echo "nightly: repeat with PV2_TEST_SEED=<the seed above> ${*:3}"
  exit 1
}
first=$((RANDOM * 32768 + RANDOM))
while ((SECONDS < seconds * 4 / 6)); do
  if [[ -x $simulation ]]; then
    simulate $((RANDOM * 32768 + RANDOM)) 1000 "$simulation"
    simulated=$((simulated + 1000))
  fi
  if [[ -x $pairs ]]; then
    simulate $((first + met)) 100 "$pairs" 'procedures that meet*'
    met=$((met + 100))
  fi
  if [[ -x $clusters ]]; then
    simulate $((RANDOM * 32768 + RANDOM)) 50 "$clusters" 'a cluster in a storm*'
    stories=$((stories + 50))
  fi
  if [[ ! -x $simulation && ! -x $pairs && ! -x $clusters ]]; then break; fi
done

# A round of this size takes a minute or two, so the time is exceeded by no more than that.
seeds=50
rounds=0
seed=$((RANDOM * 32768 + RANDOM))
until ((SECONDS >= seconds * 5 / 6)); do
  echo "== tests with seeds $seed to $((seed + seeds - 1))"
  if ! PV2_TEST_SEED=$seed PV2_TEST_SEEDS=$seeds PV2_TEST_NONCES=100000000 \
    ctest --preset release -LE once \
    >build/nightly_tests.log 2>&1; then
    cat build/nightly_tests.log
    echo "nightly: repeat with PV2_TEST_SEED=$seed PV2_TEST_SEEDS=$seeds ./test.sh --rerun-failed"
    exit 1
  fi
  seed=$((seed + seeds))
  rounds=$((rounds + 1))
done

demos=0
if [[ -x build/release/examples/pv2_demo ]]; then
  while :; do
    if ! build/release/examples/pv2_demo >build/nightly_demo.log 2>&1; then
      tail -n 100 build/nightly_demo.log
      echo "nightly: the demo failed; the end of its output is above"
      exit 1
    fi
    demos=$((demos + 1))
    if ((SECONDS >= seconds)); then break; fi
  done
fi
minutes=$((SECONDS / 60))
echo "== the paths through every function"
paths='-*'
for part in core cplusplus deadcode unix; do paths+=",clang-analyzer-$part.*"; done
cmake/run_tidy.sh --checks="$paths"
mkdir -p build/mutants
if ! tests/mutants/run.sh --copy build/mutants; then
  echo "nightly: a fault was not found; repeat with tests/mutants/run.sh --only 'its title'"
  exit 1
fi
printf 'nightly: nothing found in %d minutes' "$minutes"
printf ' (fuzzers %d, simulated seeds %d, of procedures that meet %d, of clusters %d,' \
  "${#fuzzers[@]}" "$simulated" "$((met * 3))" "$stories"
printf ' rounds of %d seeds %d,' "$seeds" "$rounds"
printf ' demos %d)\n' "$demos"
