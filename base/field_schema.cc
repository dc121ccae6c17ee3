// SPDX-License-Identifier: Apache-2.0
//
// Finds the unknown fields in encoded bytes and appends them to the known ones. Malformed bytes
// contain nothing that could be kept; the decoder reports them.

#include "pv2/base/field_schema.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "pv2/base/assert.h"
#include "pv2/base/keyed_hash.h"
#include "pv2/base/wire.h"

namespace pv2 {
namespace {

using Field = FieldSchema::Field;

// One encoded field of a message.
struct Piece {
  std::uint32_t number = 0;
  WireType type = WireType::kVarint;
  std::string_view bytes{};  // all of it, tag included
  std::string_view body{};   // if length-delimited: its content
  std::uint64_t raw = 0;     // if a number: its value
};

// Calls visit(piece) for each field of a message, in the order of the bytes.
template <class Visit>
void for_each_piece(std::string_view message, Visit&& visit) {
  WireReader reader(message);
  std::size_t begin = 0;
  while (reader.next()) {
    const std::size_t end = message.size() - reader.remaining();
    Piece piece{.number = reader.number(),
                .type = reader.type(),
                .bytes = message.substr(begin, end - begin),
                .raw = reader.raw_value()};
    if (piece.type == WireType::kBytes) piece.body = reader.bytes();
    visit(piece);
    begin = end;
  }
}

// The fields of a class that one encoded string holds: for the outermost class either its arguments
// or its state, for the classes of members all fields.
struct View {
  const FieldSchema& schema;
  std::size_t message;
  FieldSelection which;
  int depth;

  [[nodiscard]] const Field* find(std::uint32_t number) const noexcept {
    const Field* const field = schema.messages[message].find(number);
    if (field == nullptr || which == FieldSelection::kAll) return field;
    return field->argument == (which == FieldSelection::kArguments) ? field : nullptr;
  }
  // The class of the message in this field; nullopt for other fields and where messages are nested
  // too deeply.
  [[nodiscard]] std::optional<View> within(const Field* field) const noexcept {
    if (field == nullptr || field->message == FieldSchema::kNoMessage) return std::nullopt;
    if (depth == kFieldDepthMax) return std::nullopt;
    return View{schema, field->message, FieldSelection::kAll, depth + 1};
  }
};

// Appends the unknown part of a field to `out`: the whole field if the class does not know its
// number, the marks of unknown numbers if it is the field of marks, otherwise nothing.
void append_unknown(const View& view, const Piece& piece, std::string& out) {
  if (piece.number != kEmptyFieldsNumber) {
    if (view.find(piece.number) == nullptr) out += piece.bytes;
    return;
  }
  const auto mark = [&](std::uint64_t number) {
    const bool known =
        number <= kFieldNumberMax && view.find(static_cast<std::uint32_t>(number)) != nullptr;
    if (!known) append_varint_field(out, kEmptyFieldsNumber, number);
  };
  if (piece.type != WireType::kBytes) return mark(piece.raw);
  WireReader packed(piece.body);  // as protoc writes them
  std::uint64_t number = 0;
  while (packed.remaining() > 0 && packed.take_varint(number)) mark(number);
}

bool has_unknown(const View& view, std::string_view bytes) {
  bool found = false;
  std::string unknown;
  for_each_piece(bytes, [&](const Piece& piece) {
    if (found) return;
    append_unknown(view, piece, unknown);
    const auto inner = view.within(view.find(piece.number));
    found = !unknown.empty() ||
            (inner && piece.type == WireType::kBytes && has_unknown(*inner, piece.body));
  });
  return found;
}

// The message without its unknown fields, as this version would have written it.
std::string known_part(const View& view, std::string_view bytes) {
  std::string known;
  for_each_piece(bytes, [&](const Piece& piece) {
    std::string unknown;
    append_unknown(view, piece, unknown);
    if (!unknown.empty()) return;  // drops known marks of a packed list too: only protoc packs them
    const auto inner = view.within(view.find(piece.number));
    if (inner && piece.type == WireType::kBytes) {
      append_length_delimited(known, piece.number, known_part(*inner, piece.body));
    } else {
      known += piece.bytes;
    }
  });
  return known;
}

std::string_view key_of(std::string_view entry) {
  std::string_view key;
  for_each_piece(entry, [&](const Piece& piece) {
    if (piece.number == 1) key = piece.bytes;
  });
  return key;
}

// The messages that one field held before. Finds the one that each later message continues.
class Before {
 public:
  void add(std::string_view body) { bodies_.push_back(body); }
  // For a map: the last entry with a key counts.
  void add_entry(std::string_view body) { entries_[key_of(body)] = body; }

  // For a single message: all its occurrences joined, because a reader merges them.
  [[nodiscard]] std::string all() const {
    std::string joined;
    for (const std::string_view body : bodies_) joined += body;
    return joined;
  }
  // For a map: the entry with this key.
  [[nodiscard]] std::string_view with_key(std::string_view key) const {
    const auto at = entries_.find(key);
    return at == entries_.end() ? std::string_view() : at->second;
  }
  // For each element of `after`, in order, the earlier element that it continues: one with the same
  // known part, first of all the one at the same place. An element without such a match continues
  // the one at its own place if the list has kept its length and no other element continues that
  // one.
  [[nodiscard]] std::vector<std::string_view> elements(
      const View& view, const std::vector<std::string_view>& after) const {
    constexpr std::size_t kNobody = SIZE_MAX;
    // How many elements after the previous match are compared: a bound for lists that have changed
    // completely.
    constexpr std::size_t kLooksMax = 64;
    std::vector<std::string> known;
    known.reserve(bodies_.size());
    for (const std::string_view body : bodies_) known.push_back(known_part(view, body));
    std::vector<bool> taken(bodies_.size());
    std::vector<std::size_t> was(after.size(), kNobody);
    const auto take = [&](std::size_t i, std::size_t j) {
      was[i] = j;
      taken[j] = true;
    };
    const std::size_t shared = std::min(after.size(), bodies_.size());
    for (std::size_t i = 0; i < shared; ++i) {
      if (known[i] == after[i]) take(i, i);
    }
    std::size_t from = 0;  // elements that stay keep their order, so one pass finds nearly all
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (was[i] != kNobody) continue;
      const std::size_t end = std::min(bodies_.size(), from + kLooksMax);
      for (std::size_t j = from; j < end; ++j) {
        if (taken[j] || known[j] != after[i]) continue;
        take(i, j);
        from = j + 1;
        break;
      }
    }
    const bool same_count = after.size() == bodies_.size();
    std::vector<std::string_view> found(after.size());
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (was[i] == kNobody && same_count && !taken[i]) take(i, i);
      if (was[i] != kNobody) found[i] = bodies_[was[i]];
    }
    return found;
  }

 private:
  std::vector<std::string_view> bodies_;  // of all but maps
  std::unordered_map<std::string_view, std::string_view, internal::KeyedHash> entries_;  // of a map
};

std::string merged(const View& view, std::string_view before, std::string_view after);

// Appends one message of `after` to `out`, with the unknown fields of `before`.
void append_merged(const View& view, std::uint32_t number, std::string_view before,
                   std::string_view after, std::string& out) {
  append_length_delimited(out, number,
                          before.empty() ? std::string(after) : merged(view, before, after));
}

std::string merged(const View& view, std::string_view before, std::string_view after) {
  std::string unknown;
  std::vector<std::pair<std::uint32_t, Before>> messages;  // few classes have many
  for_each_piece(before, [&](const Piece& piece) {
    append_unknown(view, piece, unknown);
    const Field* const field = view.find(piece.number);
    if (piece.type != WireType::kBytes || !view.within(field)) return;
    auto at = std::find_if(messages.begin(), messages.end(),
                           [&](const auto& known) { return known.first == piece.number; });
    if (at == messages.end()) at = messages.insert(at, {piece.number, Before()});
    field->map ? at->second.add_entry(piece.body) : at->second.add(piece.body);
  });
  const auto before_of = [&](std::uint32_t number) -> const Before* {
    const auto at = std::find_if(messages.begin(), messages.end(),
                                 [&](const auto& known) { return known.first == number; });
    return at == messages.end() ? nullptr : &at->second;
  };

  std::string out;
  std::vector<std::pair<std::uint32_t, std::vector<std::string_view>>> lists;  // in `after`
  for_each_piece(after, [&](const Piece& piece) {
    const Field* const field = view.find(piece.number);
    const auto inner = view.within(field);
    const Before* const was = inner ? before_of(piece.number) : nullptr;
    if (was == nullptr || piece.type != WireType::kBytes) {
      out += piece.bytes;
    } else if (field->map) {
      append_merged(*inner, piece.number, was->with_key(key_of(piece.body)), piece.body, out);
    } else if (!field->meaning.repeated) {
      append_merged(*inner, piece.number, was->all(), piece.body, out);
    } else if (lists.empty() || lists.back().first != piece.number) {
      lists.push_back({piece.number, {piece.body}});  // the whole list is written here
      std::vector<std::string_view>& elements = lists.back().second;
      elements.clear();
      for_each_piece(after, [&](const Piece& other) {
        if (other.number == piece.number) elements.push_back(other.body);
      });
      const auto were = was->elements(*inner, elements);
      for (std::size_t i = 0; i < elements.size(); ++i) {
        append_merged(*inner, piece.number, were[i], elements[i], out);
      }
    }
  });
  return out + unknown;
}

std::string_view name_of(FieldKind kind) {
  switch (kind) {
    case FieldKind::kUnsigned:
      return "an unsigned integer";
    case FieldKind::kSigned:
      return "a signed integer";
    case FieldKind::kEnum:
      return "an enum over a signed integer";
    case FieldKind::kFloat:
      return "a float";
    case FieldKind::kDouble:
      return "a double";
    case FieldKind::kBytes:
      return "bytes";
    case FieldKind::kMessage:
      return "a message";
  }
  return "something that this version does not know";
}

}  // namespace

const FieldSchema::Field* FieldSchema::Message::find(std::uint32_t number) const noexcept {
  for (const Field& field : fields) {
    if (field.number == number) return &field;
  }
  return nullptr;
}

std::string to_string(const FieldMeaning& meaning) {
  std::string text(meaning.repeated ? "a list, each " : "");
  text += name_of(meaning.kind);
  if (!meaning.unit.empty()) text += " of " + meaning.unit;
  return text;
}

bool has_unknown_fields(const FieldSchema& schema, FieldSelection which, std::string_view bytes) {
  PV2_ASSERT(!schema.messages.empty(), "a schema describes its class");
  return has_unknown({schema, 0, which, 1}, bytes);
}

std::string with_unknown_fields(const FieldSchema& schema, FieldSelection which,
                                std::string_view before, std::string_view after) {
  PV2_ASSERT(!schema.messages.empty(), "a schema describes its class");
  std::string kept = merged({schema, 0, which, 1}, before, after);
  PV2_ASSERT(kept.size() >= after.size(), "what is kept comes on top of what is known");
  return kept;
}

}  // namespace pv2
