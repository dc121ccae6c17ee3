// SPDX-License-Identifier: Apache-2.0
//
// Everything: a class with a field of each kind, its description for protoc, and a generator of
// random values. The property tests, the comparison with protoc and the fuzzer share it, so that a
// new kind of field is tested by all of them once it is added here.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pv2/base/fields.h"
#include "pv2/base/random.h"

namespace pv2::test {

enum class Colour { kRed = 0, kGreen = 1, kBlue = -2 };
enum class Wide : std::int64_t {};
enum class Bits : std::uint64_t {};

struct Inner {
  std::int64_t count = 5;
  std::string name = "inner";
  std::vector<Inner> kids;

  void fields(auto& f) {
    f(1, "count", count);
    f(2, "name", name);
    f(3, "kids", kids);
  }
  friend bool operator==(const Inner&, const Inner&) = default;
};

/// Every member has a default that is neither zero nor empty, so that a value that is not written
/// shows.
struct Everything {
  bool flag = true;
  std::int8_t i8 = -1;
  std::int16_t i16 = -2;
  std::int32_t i32 = -3;
  std::int64_t i64 = -4;
  std::uint8_t u8 = 1;
  std::uint16_t u16 = 2;
  std::uint32_t u32 = 3;
  std::uint64_t u64 = 4;
  Colour colour = Colour::kBlue;
  Wide wide = static_cast<Wide>(-9);
  Bits bits = static_cast<Bits>(9);
  float single = 1.5F;
  double real = 2.5;
  std::string text = "text";
  std::chrono::milliseconds timeout{30};
  WallTime at = WallTime(std::chrono::hours(1));
  ProcedureId id{7};
  std::optional<std::int32_t> maybe = 8;
  std::optional<Inner> maybe_inner = Inner{};
  std::vector<std::int32_t> numbers = {1, -1};
  std::vector<bool> flags = {true};
  std::vector<double> reals = {0.5};
  std::vector<float> singles = {0.25F};
  std::vector<Colour> colours = {Colour::kGreen};
  std::vector<std::string> texts = {"a", ""};
  std::vector<Inner> inners = std::vector<Inner>(2);
  std::vector<std::pair<std::uint32_t, std::string>> pairs = {{1, "one"}};
  std::map<std::string, Inner> by_name = {{"n", {}}};
  std::map<std::int32_t, double> by_number = {{-1, 1.0}};
  Inner inner;

  void fields(auto& f) {
    f.arg(1, "flag", flag);
    f.arg(2, "i8", i8);
    f.arg(3, "i16", i16);
    f.arg(4, "i32", i32);
    f(5, "i64", i64);
    f(6, "u8", u8);
    f(7, "u16", u16);
    f(8, "u32", u32);
    f(9, "u64", u64);
    f(10, "colour", colour);
    f(11, "wide", wide);
    f(12, "bits", bits);
    f(13, "single", single);
    f(14, "real", real);
    f.arg(15, "text", text);
    f(16, "timeout", timeout);
    f(17, "at", at);
    f(18, "id", id);
    f(19, "maybe", maybe);
    f(20, "maybe_inner", maybe_inner);
    f(21, "numbers", numbers);
    f(22, "flags", flags);
    f(23, "reals", reals);
    f(24, "singles", singles);
    f(25, "colours", colours);
    f(26, "texts", texts);
    f(27, "inners", inners);
    f(28, "pairs", pairs);
    f(29, "by_name", by_name);
    f(30, "by_number", by_number);
    f(1000, "inner", inner);
  }
  friend bool operator==(const Everything&, const Everything&) = default;
};

/// The same class for protoc.
inline constexpr const char* kEverythingProto = R"(
syntax = "proto3";
enum Colour { RED = 0; GREEN = 1; BLUE = -2; }
message Inner {
  optional sint64 count = 1;
  optional bytes name = 2;
  repeated Inner kids = 3;
  repeated uint32 empty = 2047 [packed = false];
}
message Pair {
  optional uint64 first = 1;
  optional bytes second = 2;
}
message Everything {
  optional bool flag = 1;
  optional sint64 i8 = 2;
  optional sint64 i16 = 3;
  optional sint64 i32 = 4;
  optional sint64 i64 = 5;
  optional uint64 u8 = 6;
  optional uint64 u16 = 7;
  optional uint64 u32 = 8;
  optional uint64 u64 = 9;
  optional Colour colour = 10;
  optional int64 wide = 11;
  optional uint64 bits = 12;
  optional float single = 13;
  optional double real = 14;
  optional bytes text = 15;
  optional sint64 timeout = 16;
  optional sint64 at = 17;
  optional uint64 id = 18;
  optional sint64 maybe = 19;
  optional Inner maybe_inner = 20;
  repeated sint64 numbers = 21;
  repeated bool flags = 22;
  repeated double reals = 23;
  repeated float singles = 24;
  repeated Colour colours = 25;
  repeated bytes texts = 26;
  repeated Inner inners = 27;
  repeated Pair pairs = 28;
  map<string, Inner> by_name = 29;
  map<sint64, double> by_number = 30;
  optional Inner inner = 1000;
  repeated uint32 empty = 2047 [packed = false];
}
message Batch {
  repeated Everything items = 1;
  repeated uint32 empty = 2047 [packed = false];
}
)";

enum class Empties { kAllowed, kNever };

/// Makes random values; one seed, one sequence. Owned by one thread.
class EverythingSource {
 public:
  EverythingSource(std::uint64_t seed, Empties empties) : random_(seed), empties_(empties) {}

  Everything next() {
    Everything e;
    e.flag = random_.below(2) == 1;
    e.i8 = integer<std::int8_t>();
    e.i16 = integer<std::int16_t>();
    e.i32 = integer<std::int32_t>();
    e.i64 = integer<std::int64_t>();
    e.u8 = integer<std::uint8_t>();
    e.u16 = integer<std::uint16_t>();
    e.u32 = integer<std::uint32_t>();
    e.u64 = integer<std::uint64_t>();
    e.colour = static_cast<Colour>(integer<std::int32_t>());
    e.wide = static_cast<Wide>(integer<std::int64_t>());
    e.bits = static_cast<Bits>(integer<std::uint64_t>());
    e.single = static_cast<float>(real());
    e.real = real();
    e.text = text(300);
    e.timeout = std::chrono::milliseconds(integer<std::int64_t>());
    e.at = WallTime(Duration(integer<std::int64_t>()));
    e.id = ProcedureId{integer<std::uint64_t>()};
    e.maybe.reset();
    if (size(1) == 1) e.maybe = integer<std::int32_t>();
    e.maybe_inner.reset();
    if (size(1) == 1) e.maybe_inner = inner(2);
    fill(e.numbers, 40, [&] { return integer<std::int32_t>(); });
    fill(e.flags, 9, [&] { return random_.below(2) == 1; });
    fill(e.reals, 4, [&] { return real(); });
    fill(e.singles, 4, [&] { return static_cast<float>(real()); });
    fill(e.colours, 4, [&] { return static_cast<Colour>(integer<std::int32_t>()); });
    fill(e.texts, 5, [&] { return text(20); });
    fill(e.inners, 5, [&] { return inner(2); });
    fill(e.pairs, 3, [&] {
      return std::pair<std::uint32_t, std::string>{integer<std::uint32_t>(), text(5)};
    });
    e.by_name.clear();
    for (std::size_t i = size(3); i > 0; --i) e.by_name[ascii()] = inner(1);
    e.by_number.clear();
    for (std::size_t i = size(3); i > 0; --i) e.by_number[integer<std::int32_t>()] = real();
    e.inner = inner(3);
    return e;
  }

 private:
  std::size_t size(std::size_t most) {
    return empties_ == Empties::kNever ? 1 + random_.below(most) : random_.below(most + 1);
  }

  /// Few bits as often as many, so that every length of varint occurs.
  template <class T>
  T integer() {
    const std::uint64_t bits = random_.next() >> random_.below(64);
    return static_cast<T>(random_.below(2) == 1 ? bits : ~bits);
  }

  double real() {
    switch (random_.below(6)) {
      case 0:
        return 0.0;
      case 1:
        return -0.0;
      case 2:
        return std::numeric_limits<double>::infinity();
      default:
        return static_cast<double>(integer<std::int32_t>()) / 1024;
    }
  }

  std::string text(std::size_t most) {
    std::string bytes(random_.below(most + 1), '\0');
    for (char& c : bytes) c = static_cast<char>(random_.next());
    return bytes;
  }

  std::string ascii() {
    std::string name(random_.below(6), 'a');
    for (char& c : name) c = static_cast<char>('a' + random_.below(26));
    return name;
  }

  Inner inner(int levels) {
    Inner made{integer<std::int64_t>(), text(12), {}};
    // A leaf has no kids, which is an empty list; Empties::kNever ends in an `empty` mark there
    // too.
    if (levels > 0) fill(made.kids, 2, [&] { return inner(levels - 1); });
    return made;
  }

  template <class T, class Make>
  void fill(std::vector<T>& values, std::size_t most, Make make) {
    values.clear();
    for (std::size_t i = size(most); i > 0; --i) values.push_back(make());
  }

  Random random_;
  Empties empties_;
};

}  // namespace pv2::test
