// SPDX-License-Identifier: Apache-2.0
//
// Frames: length and checksum around the bytes of a record, by size.

#include <benchmark/benchmark.h>
#include <pv2/base/crc32c.h>
#include <pv2/base/frame.h>

#include <cstdint>
#include <string>

namespace {

void write(benchmark::State& state) {
  const std::string bytes(static_cast<std::size_t>(state.range(0)), 'b');
  std::string out;
  for (auto _ : state) {
    out.clear();
    pv2::append_frame(out, bytes);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(write)->Arg(32)->Arg(150)->Arg(4096);

void read(benchmark::State& state) {
  std::string framed;
  pv2::append_frame(framed, std::string(static_cast<std::size_t>(state.range(0)), 'b'));
  for (auto _ : state) {
    std::string_view input = framed;
    benchmark::DoNotOptimize(pv2::read_frame(input));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(read)->Arg(32)->Arg(150)->Arg(4096);

void checksum(benchmark::State& state) {
  const std::string bytes(static_cast<std::size_t>(state.range(0)), 'b');
  for (auto _ : state) benchmark::DoNotOptimize(pv2::crc32c(bytes));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(checksum)->Arg(32)->Arg(150)->Arg(4096);

}  // namespace
