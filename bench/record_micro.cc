// SPDX-License-Identifier: Apache-2.0
//
// The rows of a procedure: a header and the state after its third step, as a FiveSteps has them.

#include <benchmark/benchmark.h>

#include <string>

#include "harness/five_steps.h"
#include "record_codec.h"

namespace {

/// A procedure that has done three of its five steps, and the content of its next record.
struct Subject {
  Subject() {
    type.name = pv2::bench::FiveSteps::kType;
    execution.type = &type;
    execution.root = &execution;
    execution.id = pv2::ProcedureId{123'456};
    execution.nonce = {1, 123'456};
    execution.locks = pv2::bench::own_table(123'456);
    execution.arguments = "12345";
    execution.submitted = pv2::SystemClock().wall_now();
    for (std::uint32_t step = 1; step <= 3; ++step) {
      execution.record.undo.push_back({step, pv2::CommitSequence{1'000'000 + step}});
      execution.record.history.add({step, 1, pv2::Outcome::Kind::kNext, execution.submitted});
    }
    execution.record.visits = 3;
    next.step = 5;
    ++next.visits;
    next.undo = pv2::UndoChange::kPush;
    next.history = pv2::HistoryEntry{4, 1, pv2::Outcome::Kind::kNext, execution.submitted};
    next.new_image = true;
    next.image = pv2::bench::state_bytes(1);
    next.updated = execution.submitted;
  }
  pv2::ProcedureType type;
  pv2::Execution execution;
  pv2::Transition next;
};

void encode_header(benchmark::State& state) {
  const Subject subject;
  std::string row;
  for (auto _ : state) {
    row.clear();
    pv2::encode_header(subject.execution, row);
    benchmark::DoNotOptimize(row.data());
  }
  state.counters["bytes"] = static_cast<double>(row.size());
}
BENCHMARK(encode_header);

void encode_state(benchmark::State& state) {
  const Subject subject;
  std::string row;
  for (auto _ : state) {
    row.clear();
    pv2::encode_state(subject.execution, subject.next, 4, row);
    benchmark::DoNotOptimize(row.data());
  }
  state.counters["bytes"] = static_cast<double>(row.size());
}
BENCHMARK(encode_state);

void decode_both(benchmark::State& state) {
  const Subject subject;
  std::string header;
  std::string row;
  pv2::encode_header(subject.execution, header);
  pv2::encode_state(subject.execution, subject.next, 4, row);
  for (auto _ : state) {
    pv2::Execution execution;
    pv2::HeaderFacts facts;
    pv2::PartStatus user = pv2::PartStatus::kIntact;
    benchmark::DoNotOptimize(pv2::decode_header(header, execution, facts).ok());
    benchmark::DoNotOptimize(pv2::decode_state(row, pv2::CommitSequence{1}, execution, user).ok());
  }
}
BENCHMARK(decode_both);

}  // namespace
