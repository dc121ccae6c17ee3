// SPDX-License-Identifier: Apache-2.0
//
// The field codec: 100 bytes of state as one field, and an object of ten small ones.

#include <benchmark/benchmark.h>
#include <pv2/base/fields.h>

#include <cstdint>
#include <string>
#include <vector>

#include "harness/five_steps.h"

namespace {

struct OneString {
  std::string state = pv2::bench::state_bytes(1);
  void fields(auto& f) { f(1, "state", state); }
};

struct TenFields {
  std::uint64_t a = 1, b = 300, c = 1U << 20;
  std::int64_t d = -7;
  bool e = true;
  std::string f = "a table";
  std::string g = "region-0000000042";
  std::vector<std::uint64_t> h = {1, 2, 3, 4};
  double i = 0.5;
  std::uint32_t j = 9;
  void fields(auto& field) {
    field.arg(1, "a", a);
    field.arg(2, "b", b);
    field(3, "c", c);
    field(4, "d", d);
    field(5, "e", e);
    field(6, "f", f);
    field(7, "g", g);
    field(8, "h", h);
    field(9, "i", i);
    field(10, "j", j);
  }
};

template <class Object>
void encode(benchmark::State& state) {
  Object object;
  std::string bytes;
  for (auto _ : state) {
    bytes.clear();
    pv2::encode_fields(object, pv2::FieldSelection::kAll, bytes);
    benchmark::DoNotOptimize(bytes.data());
  }
  state.counters["bytes"] = static_cast<double>(bytes.size());
}
BENCHMARK(encode<OneString>);
BENCHMARK(encode<TenFields>);

template <class Object>
void decode(benchmark::State& state) {
  Object object;
  std::string bytes;
  pv2::encode_fields(object, pv2::FieldSelection::kAll, bytes);
  for (auto _ : state) {
    benchmark::DoNotOptimize(pv2::decode_fields(object, pv2::FieldSelection::kAll, bytes).ok());
  }
}
BENCHMARK(decode<OneString>);
BENCHMARK(decode<TenFields>);

void print(benchmark::State& state) {
  TenFields object;
  for (auto _ : state) benchmark::DoNotOptimize(pv2::print_fields(object));
}
BENCHMARK(print);

}  // namespace
