// SPDX-License-Identifier: Apache-2.0
//
// What docs/fields.md promises, one promise per test. Random values and protoc have their own
// files.

#include "pv2/base/fields.h"

#include <cmath>
#include <stdexcept>

#include "base/everything.h"
#include "support/catch.h"

namespace pv2::testing::fields_test {

using pv2::test::Everything;

namespace {

template <class T>
std::string encoded(T& object, FieldSelection which = FieldSelection::kAll) {
  std::string bytes;
  encode_fields(object, which, bytes);
  return bytes;
}

/// A class with one field, number 1, name "value".
template <class T>
struct One {
  T value{};
  void fields(auto& f) { f(1, "value", value); }
};

template <class T>
Status decode_one(T& value, std::string_view bytes) {
  One<T> object{value};
  Status status = decode_fields(object, FieldSelection::kAll, bytes);
  value = object.value;
  return status;
}

struct Order {
  std::string order;
  std::int64_t parcel = 0;
  void fields(auto& f) {
    f.arg(1, "order", order);
    f(2, "parcel", parcel);
  }
};

struct NoFields {};
struct HiddenFields {
 private:
  void fields(auto&) {}
};
static_assert(HasFields<Order>);
static_assert(!HasFields<NoFields>);
static_assert(!HasFields<HiddenFields>, "fields() has to be public");
static_assert(!internal::FieldType<NoFields>);
static_assert(!internal::FieldType<char>);
static_assert(!internal::FieldType<SteadyTime>, "monotonic time means nothing after a restart");
static_assert(!internal::FieldType<std::vector<std::vector<int>>>);
static_assert(!internal::FieldType<std::chrono::duration<double>>);
static_assert(internal::FieldType<std::vector<std::pair<int, std::vector<int>>>>);

enum class Named : std::uint8_t { kFirst = 1 };
std::string_view to_string(Named) { return "FIRST"; }

struct Backwards {
  std::int64_t a = 0, b = 0, c = 0;
  void fields(auto& f) {
    f(3, "c", c);
    f(1, "a", a);
    f(2, "b", b);
  }
};

struct Shown {
  std::string order = "o-\"42\"\n";
  std::string key = std::string("\xFF\x00", 2);
  Named named = Named::kFirst;
  test::Colour colour = test::Colour::kBlue;
  std::chrono::milliseconds delay{1500};
  std::chrono::duration<int, std::ratio<1, 30>> frames{3};
  WallTime at = WallTime(std::chrono::microseconds(1'767'323'045'000'006));
  std::optional<int> none;
  std::vector<bool> flags = {true, false};
  std::map<std::string, double> by_name = {{"half", 0.5}};
  std::map<int, ProcedureId> by_number = {{-1, {7}}};
  std::pair<float, std::uint64_t> pair = {std::numeric_limits<float>::infinity(), ~0ULL};
  void fields(auto& f) {
    f.arg(1, "order", order);
    f(2, "key", key);
    f(3, "named", named);
    f(4, "colour", colour);
    f(5, "delay", delay);
    f(6, "frames", frames);
    f(7, "at", at);
    f(8, "none", none);
    f(9, "flags", flags);
    f(10, "by_name", by_name);
    f(11, "by_number", by_number);
    f(12, "pair", pair);
  }
};

struct Variable {
  std::uint32_t number = 2;
  std::string name = "b";
  int a = 0, b = 0;
  void fields(auto& f) {
    f.arg(1, "a", a);
    f(number, name, b);
  }
};

struct Wrong {
  int a = 0;
  void fields(auto& f) {
    f(1, "a", a);
    f(1, "b", a);
  }
};

struct Chain {
  std::vector<Chain> next;
  void fields(auto& f) { f(1, "next", next); }
};

/// `messages` messages within each other, the outermost included.
Chain chain_of(int messages) {
  Chain chain;
  for (int i = 1; i < messages; ++i) {
    Chain outer;
    outer.next.push_back(std::move(chain));
    chain = std::move(outer);
  }
  return chain;
}

}  // namespace

TEST_CASE("arguments and state are two byte strings with one description") {
  Order order{"o-42", -1};

  CHECK(encoded(order, FieldSelection::kArguments) == "\x0A\x04o-42");
  CHECK(encoded(order, FieldSelection::kState) == "\x10\x01");
  CHECK(encoded(order) == "\x0A\x04o-42\x10\x01");

  Order read;
  REQUIRE(decode_fields(read, FieldSelection::kArguments, "\x0A\x04o-42\x10\x01").ok());
  CHECK(read.order == "o-42");
  CHECK(read.parcel == 0);  // state is not taken from the arguments
  REQUIRE(decode_fields(read, FieldSelection::kState, "\x10\x01").ok());
  CHECK(read.parcel == -1);
}

TEST_CASE("encoding appends and changes neither the object nor what was there") {
  Everything object;
  std::string bytes = "before";

  encode_fields(object, FieldSelection::kAll, bytes);

  CHECK(bytes.substr(0, 6) == "before");
  CHECK(object == Everything{});
}

TEST_CASE("zero and empty values are written, so they override other defaults") {
  Everything zero;
  zero.flag = false;
  zero.i8 = 0;
  zero.text.clear();
  zero.real = 0;
  zero.id = {};
  zero.maybe.reset();
  zero.maybe_inner.reset();
  zero.numbers.clear();
  zero.flags.clear();
  zero.texts.clear();
  zero.inners.clear();
  zero.pairs.clear();
  zero.by_name.clear();
  zero.by_number.clear();
  zero.inner.name.clear();

  Everything read;
  REQUIRE(decode_fields(read, FieldSelection::kAll, encoded(zero)).ok());

  CHECK(read == zero);
}

TEST_CASE("fields that the bytes lack keep their default") {
  Everything read;
  REQUIRE(decode_fields(read, FieldSelection::kAll, "").ok());
  CHECK(read == Everything{});
}

TEST_CASE("an empty list, map or optional is a mark in field 2047") {
  One<std::vector<std::string>> none;
  CHECK(encoded(none) == "\xF8\x7F\x01");

  std::vector<std::int32_t> numbers = {1, 2};
  std::string packed_mark("\xFA\x7F\x02\x05\x01", 5);  // protoc may pack the marks
  REQUIRE(decode_one(numbers, packed_mark).ok());
  CHECK(numbers.empty());

  numbers = {1, 2};
  REQUIRE(decode_one(numbers, std::string("\x0A\x00", 2)).ok());  // and a packed list may be empty
  CHECK(numbers.empty());

  Status torn = decode_one(numbers, std::string("\xFA\x7F\x01\x85", 4));
  CHECK(torn.code() == StatusCode::kCorruption);
}

TEST_CASE("the last occurrence of a single value wins") {
  std::int64_t value = 0;
  REQUIRE(decode_one(value, std::string("\x08\x02\x08\x04", 4)).ok());
  CHECK(value == 2);

  std::string text;
  REQUIRE(decode_one(text, "\x0A\x01p\x0A\x01q").ok());
  CHECK(text == "q");
}

TEST_CASE("a list is replaced, not extended, and may come packed, unpacked or mixed") {
  std::vector<std::int32_t> numbers = {9, 9, 9};

  REQUIRE(decode_one(numbers, std::string("\x08\x02\x0A\x02\x04\x06\x08\x08", 8)).ok());

  CHECK(numbers == std::vector<std::int32_t>{1, 2, 3, 4});
}

TEST_CASE("a map is replaced and the last entry of a key wins") {
  std::map<std::uint32_t, std::uint32_t> map = {{9, 9}};

  REQUIRE(decode_one(map, "\x0A\x04\x08\x01\x10\x02\x0A\x04\x08\x01\x10\x03").ok());

  CHECK(map == std::map<std::uint32_t, std::uint32_t>{{1, 3}});
}

TEST_CASE("an error about a wrong wire type names the field") {
  Order order;

  Status status = decode_fields(order, FieldSelection::kAll, "\x12\x01x");

  CHECK(status.code() == StatusCode::kCorruption);
  CHECK_THAT(std::string(status.message()), StartsWith("field 2 \"parcel\": expects a varint"));
}

TEST_CASE("a number that does not fit its type is refused") {
  std::uint8_t byte = 7;
  CHECK(decode_one(byte, "\x08\xFF\x01").ok());
  CHECK(byte == 255);
  CHECK_THAT(std::string(decode_one(byte, "\x08\x80\x02").message()),
             StartsWith("field 1 \"value\": the stored number does not fit"));

  std::int8_t small = 0;
  CHECK(decode_one(small, "\x08\xFF\x01").ok());
  CHECK(small == -128);
  CHECK_FALSE(decode_one(small, "\x08\x80\x02").ok());

  Named named{};
  CHECK(decode_one(named, "\x08\x02").ok());  // no enumerator, but fits the underlying type
  CHECK_FALSE(decode_one(named, "\x08\x80\x02").ok());

  bool flag = false;
  CHECK_FALSE(decode_one(flag, "\x08\x02").ok());

  std::vector<std::uint8_t> bytes;
  CHECK_FALSE(decode_one(bytes, "\x0A\x02\x80\x02").ok());
}

TEST_CASE("an error in a member names the path to it") {
  Everything object;
  std::string inner_bytes = "\x0A\x01x";  // count as bytes
  std::string bytes;
  append_length_delimited(bytes, 1000, inner_bytes);

  Status status = decode_fields(object, FieldSelection::kAll, bytes);

  CHECK_THAT(std::string(status.message()),
             StartsWith("field 1000 \"inner\": field 1 \"count\": expects a varint"));
}

TEST_CASE("malformed bytes are refused before anything is assigned") {
  Order order{"kept", 3};

  Status status = decode_fields(order, FieldSelection::kAll, std::string("\x10\x02\x0A\x7Fx", 5));

  CHECK(status.code() == StatusCode::kCorruption);
  CHECK(order.parcel == 3);
}

TEST_CASE("a field may become optional, an optional may become plain, a single value a list") {
  std::optional<std::int64_t> maybe;
  REQUIRE(decode_one(maybe, std::string("\x08\x04", 2)).ok());
  CHECK(maybe == 2);

  std::int64_t plain = 6;
  REQUIRE(decode_one(plain, "\xF8\x7F\x01").ok());  // the optional was absent
  CHECK(plain == 6);

  std::vector<std::int64_t> list;
  REQUIRE(decode_one(list, std::string("\x08\x04", 2)).ok());
  CHECK(list == std::vector<std::int64_t>{2});

  std::vector<std::string> texts;
  REQUIRE(decode_one(texts, "\x0A\x01p").ok());
  CHECK(texts == std::vector<std::string>{"p"});
}

TEST_CASE("floating-point numbers keep every bit, NaN included") {
  for (const double value : {0.1, -0.0, std::nan("7"), 5e-324, 1.7976931348623157e308}) {
    One<double> object{value};
    double read = 1;
    REQUIRE(decode_one(read, encoded(object)).ok());
    CHECK(std::bit_cast<std::uint64_t>(read) == std::bit_cast<std::uint64_t>(value));
  }
}

TEST_CASE("messages nest a hundred deep and no deeper, in encoding and decoding") {
  Chain deepest = chain_of(kFieldDepthMax);
  const std::string bytes = encoded(deepest);
  Chain read;
  REQUIRE(decode_fields(read, FieldSelection::kAll, bytes).ok());
  CHECK(encoded(read) == bytes);

  Chain too_deep = chain_of(kFieldDepthMax + 1);
  std::string out;
  CHECK_THROWS_AS(encode_fields(too_deep, FieldSelection::kAll, out), std::length_error);

  std::string forged;
  append_length_delimited(forged, 1, bytes);
  Status status = decode_fields(read, FieldSelection::kAll, forged);
  CHECK(status.code() == StatusCode::kCorruption);
  CHECK_THAT(std::string(status.message()), ContainsSubstring("100 messages deep"));
}

TEST_CASE("fields declared in any order read bytes in any order") {
  Backwards written{1, 2, 3};
  for (const std::string& bytes : {encoded(written), std::string("\x08\x02\x10\x04\x18\x06", 6),
                                   std::string("\x10\x04\x18\x06\x08\x02", 6)}) {
    Backwards read;
    REQUIRE(decode_fields(read, FieldSelection::kAll, bytes).ok());
    CHECK((read.a == 1 && read.b == 2 && read.c == 3));
  }
}

TEST_CASE("printed fields show names, units and text, and bytes that are no text in hex") {
  Shown shown;

  CHECK(print_fields(shown) ==
        R"({"order":"o-\"42\"\n","key":{"hex":"ff00"},"named":"FIRST","colour":-2,)"
        R"("delay":"1500ms","frames":"3[1/30]s","at":"2026-01-02T03:04:05.000006Z","none":null,)"
        R"("flags":[true,false],"by_name":{"half":0.5},"by_number":[{"key":-1,"value":7}],)"
        R"("pair":{"first":"Infinity","second":18446744073709551615}})");
  CHECK(encoded(shown).size() > 1);  // everything shown can be stored too
}

TEST_CASE("times before 1970 and at the ends of the range can be shown") {
  CHECK(internal::format_time(WallTime(Duration(-1))) == "1969-12-31T23:59:59.999999Z");
  CHECK(internal::format_time(WallTime(Duration(253'402'300'799'999'999))) ==
        "9999-12-31T23:59:59.999999Z");
  CHECK(internal::format_time(WallTime::max()) == "9223372036854775807us since 1970");
  CHECK(internal::format_time(WallTime::min()) == "-9223372036854775808us since 1970");
}

TEST_CASE("JSON text escapes what JSON forbids, and only well-formed UTF-8 is text") {
  std::string out;
  JsonWriter(out).begin_array().string("\x01\t\x7F\\é").number(-1.25).null().end_array();
  CHECK(out == "[\"\\u0001\\t\\u007f\\\\é\",-1.25,null]");

  CHECK(is_utf8("aé€😀"));
  for (const char* bad : {"\x80", "\xC0\x80", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80",
                          "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82"}) {
    CHECK_FALSE(is_utf8(bad));
  }
}

TEST_CASE("a wrong description is found before anything is stored with it") {
  const auto mistake = [](std::uint32_t number, const char* name) {
    Variable object{number, name};
    Status status = validate_fields(object);
    return status.ok() ? std::string("none") : std::string(status.message());
  };

  CHECK(mistake(2, "b") == "none");
  CHECK(mistake(2046, "b") == "none");
  CHECK(mistake(2047, "b") == "field 2047 \"b\": numbers end at 2046");
  CHECK(mistake(0, "b") == "field 0 \"b\": numbers begin at 1");
  CHECK(mistake(1, "b") == "field 1 \"b\": its number already belongs to \"a\"");
  CHECK(mistake(2, "a") == "field 2 \"a\": its name already belongs to field 1 \"a\"");
  CHECK(mistake(2, "") == "field 2 \"\": it needs a name for listings");
}

TEST_CASE("a wrong description is also found in the classes of members, recursive ones included") {
  One<std::vector<Wrong>> in_vector;
  One<std::optional<Wrong>> in_optional;
  One<std::map<int, Wrong>> in_map;
  One<std::vector<std::pair<int, Wrong>>> in_pair;

  CHECK(validate_fields(in_vector).code() == StatusCode::kInvalidArgument);
  CHECK_FALSE(validate_fields(in_optional).ok());
  CHECK_FALSE(validate_fields(in_map).ok());
  CHECK_FALSE(validate_fields(in_pair).ok());
  CHECK_THAT(std::string(validate_fields(in_vector).message()),
             StartsWith("field 1 \"value\": field 1 \"b\""));

  Everything everything;
  CHECK(validate_fields(everything).ok());
  Chain chain;
  CHECK(validate_fields(chain).ok());
}

}  // namespace pv2::testing::fields_test
