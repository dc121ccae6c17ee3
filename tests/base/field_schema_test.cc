// SPDX-License-Identifier: Apache-2.0
//
// Schemas: the text for what a number means, and that an older version of a class writes back the
// fields of a newer one that it does not know. The versions are classes of this file.

#include "pv2/base/field_schema.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/everything.h"
#include "pv2/base/fields.h"
#include "support/catch.h"

namespace pv2::testing::field_schema_test {

using pv2::test::Everything;

namespace {

enum class Signed { kA = 1 };
enum class Unsigned : std::uint8_t { kA = 1 };

template <class T>
std::string encoded(T object, FieldSelection which = FieldSelection::kAll) {
  std::string bytes;
  encode_fields(object, which, bytes);
  return bytes;
}

template <class T>
T decoded(std::string_view bytes) {
  T object;
  REQUIRE(decode_fields(object, FieldSelection::kAll, bytes).ok());
  return object;
}

// The bytes that `Old` writes after reading those of `New`, unchanged or changed by `change`.
template <class Old, class New, class Change>
New through(const New& object, const Change& change) {
  Old old;
  const FieldSchema schema = schema_of(old);
  const std::string before = encoded(object);
  old = decoded<Old>(before);
  change(old);
  const std::string after = with_unknown_fields(schema, FieldSelection::kAll, before, encoded(old));
  CHECK(has_unknown_fields(schema, FieldSelection::kAll, before) ==
        has_unknown_fields(schema, FieldSelection::kAll, after));
  // Known fields are not changed by the ones that are kept, and keeping them twice changes nothing.
  CHECK(encoded(decoded<Old>(after)) == encoded(old));
  CHECK(with_unknown_fields(schema, FieldSelection::kAll, after, encoded(old)) == after);
  return decoded<New>(after);
}

struct OldLine {
  std::string item = "?";
  std::uint32_t count = 0;
  void fields(auto& f) {
    f(1, "item", item);
    f(2, "count", count);
  }
};
struct NewLine {
  std::string item;
  std::uint32_t count = 0;
  std::string colour;
  std::vector<std::string> notes = {"default"};
  void fields(auto& f) {
    f(1, "item", item);
    f(2, "count", count);
    f(3, "colour", colour);
    f(4, "notes", notes);
  }
  friend bool operator==(const NewLine&, const NewLine&) = default;
};

template <class Line>
struct Order {
  Line first;
  std::optional<Line> gift;
  std::vector<Line> lines;
  std::map<std::string, Line> by_shop;
  std::pair<Line, std::string> pair;
  void fields(auto& f) {
    f(1, "first", first);
    f(2, "gift", gift);
    f(3, "lines", lines);
    f(4, "by shop", by_shop);
    f(5, "pair", pair);
  }
};
using OldOrder = Order<OldLine>;
struct NewOrder : Order<NewLine> {
  double weight = 0;
  std::vector<std::int32_t> codes = {-1};
  std::optional<std::string> voucher = "default";
  void fields(auto& f) {
    f(7, "codes", codes);
    Order::fields(f);
    f(6, "weight", weight);
    f(2000, "voucher", voucher);
  }
};

NewLine line(const std::string& item, const std::string& colour) {
  return {item, 1, colour, {"of " + colour}};
}

NewOrder an_order() {
  NewOrder order;
  order.first = line("book", "red");
  order.gift = line("card", "blue");
  order.lines = {line("a", "1"), line("b", "2"), line("c", "3")};
  order.by_shop = {{"east", line("e", "4")}, {"west", line("w", "5")}};
  order.pair = {line("p", "6"), "second"};
  order.weight = 2.5;
  order.codes = {};
  order.voucher = std::nullopt;
  return order;
}

template <class Line>
struct Shops {
  std::map<std::string, Line> lines;
  void fields(auto& f) { f(1, "lines", lines); }
};

void check_outermost(const NewOrder& kept) {
  CHECK(kept.weight == 2.5);
  CHECK(kept.codes.empty());  // the mark of an empty list is kept as well
  CHECK_FALSE(kept.voucher.has_value());
}

}  // namespace

TEST_CASE(
    "a version that changes nothing writes the fields that it does not know back, at every depth") {
  const NewOrder kept = through<OldOrder>(an_order(), [](OldOrder&) {});

  check_outermost(kept);
  CHECK(kept.first == an_order().first);
  CHECK(kept.gift == an_order().gift);
  CHECK(kept.lines == an_order().lines);
  CHECK(kept.by_shop == an_order().by_shop);
  CHECK(kept.pair == an_order().pair);
}

TEST_CASE("an older version changes the fields that it knows and keeps the others") {
  const NewOrder kept = through<OldOrder>(an_order(), [](OldOrder& order) {
    order.first.item = "two books";
    order.gift->count = 7;
    order.lines[1].item = "B";
    order.by_shop.erase("east");
    order.by_shop["north"] = {"n", 2};
    order.by_shop["west"].count = 9;
    order.pair.first.count = 3;
  });

  check_outermost(kept);
  CHECK(kept.first == NewLine{"two books", 1, "red", {"of red"}});
  CHECK(kept.gift == NewLine{"card", 7, "blue", {"of blue"}});
  CHECK(kept.lines[1] == NewLine{"B", 1, "2", {"of 2"}});
  CHECK(kept.lines[2] == line("c", "3"));
  CHECK(kept.by_shop.at("west") == NewLine{"w", 9, "5", {"of 5"}});
  CHECK(kept.by_shop.at("north") == NewLine{"n", 2, "", {"default"}});
  CHECK(kept.by_shop.size() == 2);
  CHECK(kept.pair.first == NewLine{"p", 3, "6", {"of 6"}});
}

TEST_CASE("the elements of a list keep their unknown fields when they are moved") {
  NewOrder kept = through<OldOrder>(an_order(), [](OldOrder& order) {
    order.lines.erase(order.lines.begin());
    order.lines.push_back({"d", 1});
  });
  REQUIRE(kept.lines.size() == 3);
  CHECK(kept.lines[0] == line("b", "2"));
  CHECK(kept.lines[1] == line("c", "3"));
  CHECK(kept.lines[2] == NewLine{"d", 1, "", {"default"}});  // not what had been the first one's

  kept = through<OldOrder>(an_order(), [](OldOrder& order) {
    order.lines.insert(order.lines.begin(), {"new", 1});
  });
  REQUIRE(kept.lines.size() == 4);
  CHECK(kept.lines[0] == NewLine{"new", 1, "", {"default"}});
  CHECK(kept.lines[3] == line("c", "3"));

  kept = through<OldOrder>(an_order(), [](OldOrder& order) {
    order.lines.clear();
    order.gift.reset();
  });
  CHECK(kept.lines.empty());
  CHECK_FALSE(kept.gift.has_value());
}

TEST_CASE("each of many entries of a map keeps its own unknown fields") {
  Shops<NewLine> shops;
  for (int i = 0; i < 2000; ++i) {
    shops.lines.emplace(std::to_string(i), line("item", std::to_string(i)));
  }
  const auto kept = through<Shops<OldLine>>(shops, [](Shops<OldLine>& old) {
    old.lines.erase("7");
    old.lines["new"].item = "made by the old version";
  });

  shops.lines.erase("7");
  shops.lines["new"] = decoded<NewLine>(encoded(OldLine{"made by the old version", 0}));
  CHECK(kept.lines == shops.lines);
}

TEST_CASE("of two entries of a map with one key the last one's unknown fields are kept") {
  Shops<OldLine> old;
  const FieldSchema schema = schema_of(old);
  const std::string before = encoded(Shops<NewLine>{{{"east", line("a", "red")}}}) +
                             encoded(Shops<NewLine>{{{"west", line("b", "green")}}}) +
                             encoded(Shops<NewLine>{{{"east", line("c", "blue")}}});
  const std::string after = encoded(decoded<Shops<OldLine>>(before));
  const auto kept =
      decoded<Shops<NewLine>>(with_unknown_fields(schema, FieldSelection::kAll, before, after));

  CHECK(kept.lines ==
        std::map<std::string, NewLine>{{"east", line("c", "blue")}, {"west", line("b", "green")}});
}

TEST_CASE("bytes of the same version contain no unknown fields, whatever their values") {
  Everything everything;
  const FieldSchema schema = schema_of(everything);
  CHECK_FALSE(has_unknown_fields(schema, FieldSelection::kAll, encoded(everything)));
  CHECK(with_unknown_fields(schema, FieldSelection::kAll, encoded(everything),
                            encoded(everything)) == encoded(everything));
  CHECK_FALSE(has_unknown_fields(schema, FieldSelection::kAll, ""));
}

TEST_CASE("marks that protoc packed are kept for unknown numbers, one by one") {
  OldLine known;
  const FieldSchema schema = schema_of(known);
  std::string packed;
  append_varint(packed, 2);  // known: a single number, so the mark means nothing
  append_varint(packed, 9);
  std::string before = encoded(OldLine{"x", 1});
  append_length_delimited(before, kEmptyFieldsNumber, packed);

  std::string expected = encoded(OldLine{"y", 1});
  append_varint_field(expected, kEmptyFieldsNumber, 9);
  CHECK(with_unknown_fields(schema, FieldSelection::kAll, before, encoded(OldLine{"y", 1})) ==
        expected);
}

TEST_CASE("arguments are unknown fields to the state, and state fields to the arguments") {
  FieldSchema schema;
  schema.messages.resize(1);
  schema.messages[0].fields = {{.number = 1, .name = "order", .argument = true},
                               {.number = 2, .name = "parcel"}};
  std::string argument;
  append_length_delimited(argument, 1, "o");
  std::string state;
  append_length_delimited(state, 2, "p");
  CHECK(has_unknown_fields(schema, FieldSelection::kState, argument));
  CHECK_FALSE(has_unknown_fields(schema, FieldSelection::kArguments, argument));
  CHECK(has_unknown_fields(schema, FieldSelection::kArguments, state));
  CHECK_FALSE(has_unknown_fields(schema, FieldSelection::kState, state));
}

namespace {
struct Meanings {
  std::int32_t a = 0;
  bool b = false;
  Signed c{};
  Unsigned d{};
  float e = 0;
  double g = 0;
  std::string h;
  std::chrono::milliseconds i{};
  std::chrono::duration<std::uint32_t, std::ratio<1, 30>> j{};
  WallTime k{};
  ProcedureId l;
  std::vector<std::string> m;
  std::map<std::string, std::int64_t> n;
  std::optional<std::chrono::seconds> o;
  OldLine p;
  void fields(auto& f) {
    f(1, "a", a), f(2, "b", b), f(3, "c", c), f(4, "d", d), f(5, "e", e), f(7, "g", g);
    f(8, "h", h), f(9, "i", i), f(10, "j", j), f(11, "k", k), f(12, "l", l), f(13, "m", m);
    f(14, "n", n), f(15, "o", o), f(16, "p", p);
  }
};
}  // namespace

TEST_CASE("the text for a field's meaning names sign and unit, and says whether it is a list") {
  Meanings object;
  const FieldSchema schema = schema_of(object);
  const std::vector<std::string> words = {"a signed integer",
                                          "an unsigned integer",
                                          "an enum over a signed integer",
                                          "an unsigned integer",
                                          "a float",
                                          "a double",
                                          "bytes",
                                          "a signed integer of ms",
                                          "an unsigned integer of [1/30]s",
                                          "a signed integer of us since 1970",
                                          "an unsigned integer",
                                          "a list, each bytes",
                                          "a list, each a message",
                                          "a signed integer of s",
                                          "a message"};
  const auto& fields = schema.messages.front().fields;
  REQUIRE(fields.size() == words.size());
  for (std::size_t i = 0; i < words.size(); ++i) CHECK(to_string(fields[i].meaning) == words[i]);
}

TEST_CASE("a class that contains itself is in its schema once") {
  pv2::test::Inner inner;
  const FieldSchema schema = schema_of(inner);
  REQUIRE(schema.messages.size() == 1);
  CHECK(schema.messages[0].find(3)->message == 0);
}

}  // namespace pv2::testing::field_schema_test
