// SPDX-License-Identifier: Apache-2.0
//
// Encoding writes each protobuf message straight into its frame. Decoding trusts nothing: a wrong
// number, a torn message or a state that does not exist is a Status that says what, never an
// assertion.

#include "record_codec.h"

#include <pv2/base/frame.h>
#include <pv2/base/wire.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

namespace pv2 {
namespace {

// Field numbers, persisted (docs/store-format.md). Retired ones are not used again.
namespace header_field {
enum : std::uint32_t {
  kId = 1,
  kParent = 2,
  kRoot = 3,
  kType = 4,
  kNonceGroup = 5,
  kNonceValue = 6,
  kFingerprintHigh = 7,
  kFingerprintLow = 8,
  kSubmitted = 9,
  kOwner = 10,
  kLock = 11,
  kLockScope = 12,
  kPriority = 13,
  kSpawnedAt = 14,
  kPrimaryClass = 15,
  kPrimaryName = 16,
  kOnFailure = 17,
  kUndoOrder = 18,
  kFingerprintForm = 19,
};
}  // namespace header_field
namespace lock_field {
enum : std::uint32_t { kClass = 1, kName = 2, kMode = 3 };
}  // namespace lock_field
namespace error_field {
enum : std::uint32_t { kCode = 1, kMessage = 2 };
}  // namespace error_field
namespace state_field {
enum : std::uint32_t {
  kState = 1,
  kStep = 2,
  kAttempt = 3,
  kVisits = 4,
  kFlags = 5,
  kDeadline = 6,
  kPatience = 7,
  kUndo = 8,
  kHistory = 9,
  kErrorCode = 10,
  kErrorMessage = 11,
  kFailureSequence = 12,
  kUpdated = 13,
  kResult = 14,
  kParkedCode = 15,
  kParkedMessage = 16,
  kEndedAge = 17,
  kInterrupted = 19,
  kUndoError = 20,
};
}  // namespace state_field
constexpr std::uint64_t kHoldsLocks = 1;
constexpr std::uint64_t kNoReturn = 2;
constexpr std::uint64_t kParked = 4;
constexpr std::uint64_t kAwaits = 8;
constexpr std::uint64_t kBypassed = 16;
constexpr std::uint64_t kSentBack = 32;
constexpr std::uint64_t kReported = 64;
constexpr std::uint64_t kUnsure = 128;
constexpr std::uint64_t kKnowsInterrupted = 1024;
constexpr std::uint64_t kAudited = 2048;
// In the step of a history entry, beside its 32 bits: it was being undone.
constexpr std::uint64_t kUndoEntry = std::uint64_t{1} << 32;

void write_big_endian(char* out, std::uint64_t value) {
  value = __builtin_bswap64(value);
  std::memcpy(out, &value, sizeof value);
}

std::uint64_t read_big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i)
    value = (value << 8) | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  return value;
}

std::int64_t micros(WallTime time) { return time.time_since_epoch().count(); }
WallTime wall_time(std::int64_t micros) { return WallTime(Duration(micros)); }

// Writes a row at the end of a string that was made long enough for the largest it can be, so that
// nothing is appended field by field. What was not needed is cut off at the end.
class RowWriter {
 public:
  // What a number, or the frame of a string or list, takes at most: a tag of two bytes and a
  // varint.
  static constexpr std::size_t kFieldMax = 2 + kVarintBytesMax;

  RowWriter(std::string& out, std::size_t bytes_max) : out_(out) {
    const std::size_t start = out.size();
    out.resize(start + bytes_max);
    at_ = out.data() + start;
  }
  ~RowWriter() {
    const auto size = static_cast<std::size_t>(at_ - out_.data());
    PV2_ASSERT(size <= out_.size(), "a row fits the room that was made for it");
    out_.resize(size);
  }
  RowWriter(const RowWriter&) = delete;
  RowWriter& operator=(const RowWriter&) = delete;

  void put(std::uint64_t value) noexcept {
    while (value >= 0x80) {
      *at_++ = static_cast<char>(value | 0x80);
      value >>= 7;
    }
    *at_++ = static_cast<char>(value);
  }
  void put_raw(std::string_view bytes) noexcept {
    PV2_ASSERT(bytes.size() <= static_cast<std::size_t>(out_.data() + out_.size() - at_),
               "a row fits the room that was made for it");
    if (!bytes.empty()) std::memcpy(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  void varint(std::uint32_t number, std::uint64_t value) noexcept {
    put(make_tag(number, WireType::kVarint));
    put(value);
  }
  void sint(std::uint32_t number, std::int64_t value) noexcept { varint(number, zigzag(value)); }
  void fixed64(std::uint32_t number, std::uint64_t value) noexcept {
    put(make_tag(number, WireType::kFixed64));
    std::memcpy(at_, &value, sizeof value);  // little-endian, as everything stored
    at_ += sizeof value;
  }
  void bytes(std::uint32_t number, std::string_view value) noexcept {
    put(make_tag(number, WireType::kBytes));
    put(value.size());
    put_raw(value);
  }

  // A packed list of varints: open, put each, close. Two length bytes hold up to 16 KiB.
  [[nodiscard]] char* open_list(std::uint32_t number) noexcept {
    put(make_tag(number, WireType::kBytes));
    at_ += 2;
    return at_;
  }
  void close_list(char* list) noexcept {
    PV2_ASSERT(at_ >= list, "a list is closed behind what it holds");
    const auto length = static_cast<std::size_t>(at_ - list);
    PV2_ASSERT(length < (1U << 14), "the lists of a record are bounded");
    list[-2] = static_cast<char>((length & 0x7F) | 0x80);
    list[-1] = static_cast<char>(length >> 7);
  }

  [[nodiscard]] char* open_frame() noexcept {
    char* const frame = at_;
    at_ += kFrameHeaderBytes;
    return frame;
  }
  void close_frame(char* frame) noexcept {
    PV2_ASSERT(at_ >= frame + kFrameHeaderBytes, "a frame is closed behind what it holds");
    seal_frame(frame, static_cast<std::size_t>(at_ - frame) - kFrameHeaderBytes);
  }

 private:
  std::string& out_;
  char* at_;
};

// Pairs: step, sequence of the record that added the entry (0: this record; of a step that never
// ended, kUnfinishedStep).
void encode_undo_list(RowWriter& row, const Record& last, const Transition& next,
                      std::uint32_t ran_step) {
  const auto [kept, adds] = undo_after(last, next, ran_step);
  if (kept == 0 && !adds) return;
  char* const list = row.open_list(state_field::kUndo);
  for (std::size_t i = 0; i < kept; ++i) {
    row.put(last.undo[i].step);
    row.put(last.undo[i].sequence.value);
  }
  if (adds) {
    row.put(ran_step);
    row.put(next.undo_is_unfinished ? kUnfinishedStep.value : 0);
  }
  row.close_list(list);
}

// What a record says of who was in the middle of a step; nullptr: nothing, or nothing any more.
const InterruptedMembers* interrupted_of(const Execution& execution, const Transition& next) {
  const bool over =
      next.state == ProcedureState::kRolledBack && (next.reported || execution.root == &execution);
  if (over) return nullptr;
  return next.interrupted ? next.interrupted.get() : execution.record.interrupted.get();
}

// Pairs: how far the range begins behind the end of the one before, how long it goes on.
void encode_interrupted(RowWriter& row, const InterruptedMembers* interrupted) {
  if (interrupted == nullptr || interrupted->ranges().empty()) return;
  char* const list = row.open_list(state_field::kInterrupted);
  ProcedureId end;
  for (const InterruptedMembers::Range& range : interrupted->ranges()) {
    PV2_ASSERT(end < range.first && !(range.last < range.first), "ranges of ids are in order");
    row.put(range.first.value - end.value);
    row.put(range.last.value - range.first.value);
    end = range.last;
  }
  row.close_list(list);
}

// Triples, oldest first: step (with kUndoEntry), attempt * 16 + outcome, how long before this
// record (zigzag, microseconds).
void encode_history(RowWriter& row, const History& history, const Transition& next) {
  if (history.size() == 0 && !next.history) return;
  const auto add = [&](const HistoryEntry& entry) {
    row.put(entry.step | (entry.undo ? kUndoEntry : 0));
    row.put((std::uint64_t{entry.attempt} << 4) | static_cast<std::uint64_t>(entry.outcome));
    row.put(zigzag((next.updated - entry.at).count()));
  };
  char* const list = row.open_list(state_field::kHistory);
  const bool drops_oldest = next.history && history.size() == History::kCapacity;
  for (std::size_t i = drops_oldest ? 1 : 0; i < history.size(); ++i) add(history.at(i));
  if (next.history) add(*next.history);
  row.close_list(list);
}

void encode_error(RowWriter& row, const FailureAfter& failure) {
  if (!failure.parked.ok()) {
    row.varint(state_field::kParkedCode, static_cast<std::uint64_t>(failure.parked.code()));
    row.bytes(state_field::kParkedMessage, failure.parked.message());
  }
  if (failure.error.ok()) return;
  row.varint(state_field::kErrorCode, static_cast<std::uint64_t>(failure.error.code()));
  row.bytes(state_field::kErrorMessage, failure.error.message());
  if (failure.sequence) row.varint(state_field::kFailureSequence, failure.sequence->value);
}

// A message: why the last attempt to undo failed.
void encode_undo_error(RowWriter& row, const Status& error) {
  if (error.ok()) return;
  const auto code = static_cast<std::uint64_t>(error.code());
  const std::size_t message = error.message().size();
  row.put(make_tag(state_field::kUndoError, WireType::kBytes));
  row.put(2 + varint_size(code) + varint_size(message) + message);
  row.varint(error_field::kCode, code);
  row.bytes(error_field::kMessage, error.message());
}

// A message of one digit's tags: its length is known before it is written.
void encode_lock(RowWriter& row, const LockRequest& request) {
  const std::string_view name = request.key.name;
  const auto cls = static_cast<std::uint64_t>(request.key.cls);
  const auto mode = static_cast<std::uint64_t>(request.mode);
  row.put(make_tag(header_field::kLock, WireType::kBytes));
  row.put(3 + varint_size(cls) + varint_size(name.size()) + name.size() + varint_size(mode));
  row.varint(lock_field::kClass, cls);
  row.bytes(lock_field::kName, name);
  row.varint(lock_field::kMode, mode);
}

Status malformed(std::string_view what, const WireReader& reader) {
  return reader.status().with_context(what);
}

Status decode_undo_list(std::string_view bytes, CommitSequence own, LazyVector<UndoEntry>& undo) {
  WireReader reader(bytes);
  while (reader.remaining() != 0) {
    std::uint64_t step = 0;
    std::uint64_t sequence = 0;
    if (!reader.take_varint(step) || !reader.take_varint(sequence)) {
      return malformed("undo list", reader);
    }
    undo.push_back(
        {static_cast<std::uint32_t>(step), sequence == 0 ? own : CommitSequence{sequence}});
  }
  return Status();
}

Status decode_interrupted(std::string_view bytes, InterruptedMembers& interrupted) {
  WireReader reader(bytes);
  std::uint64_t end = 0;
  while (reader.remaining() != 0) {
    std::uint64_t gap = 0;
    std::uint64_t length = 0;
    if (!reader.take_varint(gap) || !reader.take_varint(length)) {
      return malformed("list of interrupted members", reader);
    }
    const std::uint64_t first = end + gap;
    end = first + length;
    if (!interrupted.append({ProcedureId{first}, ProcedureId{end}})) {
      return Status(StatusCode::kCorruption, "its interrupted members are in no order");
    }
  }
  return Status();
}

Status decode_history(std::string_view bytes, WallTime updated, History& history) {
  WireReader reader(bytes);
  while (reader.remaining() != 0) {
    std::uint64_t step = 0;
    std::uint64_t attempt_and_outcome = 0;
    std::uint64_t before = 0;
    if (!reader.take_varint(step) || !reader.take_varint(attempt_and_outcome) ||
        !reader.take_varint(before)) {
      return malformed("history", reader);
    }
    history.add({static_cast<std::uint32_t>(step),
                 static_cast<std::uint32_t>(attempt_and_outcome >> 4),
                 static_cast<Outcome::Kind>(attempt_and_outcome & 15),
                 updated - Duration(unzigzag(before)), (step & kUndoEntry) != 0});
  }
  return Status();
}

// Numbers that name values of an enumeration. One that the type cannot hold is remembered: without
// its upper bits it would be one of the values, and the record would say something else.
class NamedValues {
 public:
  template <class Enum>
  void read(WireReader& reader, Enum& value) {
    const std::uint64_t number = reader.varint();
    if (number > std::numeric_limits<std::underlying_type_t<Enum>>::max()) {
      too_large_ = number;
      return;
    }
    value = static_cast<Enum>(number);
  }
  /// Refuses the record that they were read from, if one of them was too large.
  [[nodiscard]] Status status(std::string_view what) const {
    if (too_large_ == 0) return Status();
    return Status(StatusCode::kCorruption, std::string(what) + " names value " +
                                               std::to_string(too_large_) +
                                               " where 255 is the largest");
  }

 private:
  std::uint64_t too_large_ = 0;
};

Status decode_undo_error(std::string_view bytes, Status& error) {
  auto code = StatusCode::kOk;
  std::string message;
  NamedValues named;
  WireReader reader(bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case error_field::kCode:
        named.read(reader, code);
        break;
      case error_field::kMessage:
        message = reader.bytes();
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return malformed("error of an undo", reader);
  if (Status unknown = named.status("error of an undo"); !unknown.ok()) return unknown;
  if (code != StatusCode::kOk) error = Status(code, std::move(message));
  return Status();
}

Result<LockRequest> decode_lock(std::string_view bytes) {
  LockRequest request;
  NamedValues named;
  WireReader reader(bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case lock_field::kClass:
        named.read(reader, request.key.cls);
        break;
      case lock_field::kName:
        request.key.name = reader.bytes();
        break;
      case lock_field::kMode:
        named.read(reader, request.mode);
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return malformed("lock", reader);
  if (Status unknown = named.status("lock"); !unknown.ok()) return unknown;
  if (request.mode != LockMode::kShared && request.mode != LockMode::kExclusive) {
    return Status(StatusCode::kCorruption, "lock of unknown mode on " + to_string(request.key));
  }
  return request;
}

// Takes the engine's frame off a row, and the user's into `user_bytes`.
Result<std::string_view> split_row(std::string_view row, CompactBytes& user_bytes,
                                   PartStatus& user) {
  const auto engine = read_frame(row);
  if (!engine) {
    return Status(StatusCode::kCorruption, "the engine's part does not match its checksum");
  }
  const auto user_frame = read_frame(row);
  user = user_frame ? PartStatus::kIntact : PartStatus::kDamaged;
  if (user_frame) user_bytes = *user_frame;
  return *engine;
}

std::string numbered_key(ProcedureId id, RowKind kind, std::uint64_t number) {
  std::string key(17, static_cast<char>(kind));
  write_big_endian(key.data(), id.value);
  write_big_endian(key.data() + 9, number);
  return key;
}

}  // namespace

FixedKey<9> procedure_key(ProcedureId id, RowKind kind) noexcept {
  FixedKey<9> key;
  write_big_endian(key.bytes.data(), id.value);
  key.bytes[8] = static_cast<char>(kind);
  return key;
}

FixedKey<8> result_key(ProcedureId id) noexcept {
  FixedKey<8> key;
  write_big_endian(key.bytes.data(), id.value);
  return key;
}

// Both rows are frames, which say how long they are; whether what is in them is right is seen when
// they are decoded.
std::optional<ResultRow> split_result(std::string_view row) noexcept {
  std::string_view left = row;
  constexpr int kFramesOfHeader = 2;
  for (int i = 0; i < kFramesOfHeader; ++i) {
    const auto size = size_of_frame(left);
    if (!size) return std::nullopt;
    left.remove_prefix(*size);
  }
  return ResultRow{row.substr(0, row.size() - left.size()), left};
}

std::string inbox_key(ProcedureId id, std::uint64_t number) {
  return numbered_key(id, RowKind::kInbox, number);
}

std::string audit_key(ProcedureId root, std::uint64_t number) {
  return numbered_key(root, RowKind::kAudit, number);
}

std::optional<ProcedureKey> parse_procedure_key(std::string_view key) {
  if (key.size() != 9 && key.size() != 17) return std::nullopt;
  const auto kind = static_cast<RowKind>(key[8]);
  if (key.size() == 17) {
    if (kind != RowKind::kInbox && kind != RowKind::kAudit) return std::nullopt;
    return ProcedureKey{ProcedureId{read_big_endian(key)}, kind, read_big_endian(key.substr(9))};
  }
  if (kind != RowKind::kHeader && kind != RowKind::kState) return std::nullopt;
  return ProcedureKey{ProcedureId{read_big_endian(key)}, kind};
}

ProcedureId id_in_key(std::string_view key) noexcept {
  return key.size() < 8 ? ProcedureId() : ProcedureId{read_big_endian(key)};
}

FixedKey<16> nonce_key(const Nonce& nonce) noexcept {
  FixedKey<16> key;
  write_big_endian(key.bytes.data(), nonce.group);
  write_big_endian(key.bytes.data() + 8, nonce.value);
  return key;
}

std::optional<Nonce> parse_nonce_key(std::string_view key) {
  if (key.size() != 16) return std::nullopt;
  return Nonce{read_big_endian(key), read_big_endian(key.substr(8))};
}

void encode_nonce_record(const NonceRecord& record, std::string& out) {
  PV2_ASSERT(record.id, "a nonce is that of a procedure");
  FrameWriter frame(out);
  append_varint_field(out, 1, record.id.value);
  append_fixed64_field(out, 2, record.fingerprint.high);
  append_fixed64_field(out, 3, record.fingerprint.low);
  if (record.fingerprint.form != Fingerprint::Form::kJoined) {
    append_varint_field(out, 4, static_cast<std::uint64_t>(record.fingerprint.form));
  }
  frame.finish();
}

Result<NonceRecord> decode_nonce_record(std::string_view row) {
  const auto bytes = read_frame(row);
  if (!bytes) return Status(StatusCode::kCorruption, "nonce row does not match its checksum");
  NonceRecord record;
  record.fingerprint.form = Fingerprint::Form::kJoined;  // where nothing else is said
  WireReader reader(*bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case 1:
        record.id = ProcedureId{reader.varint()};
        break;
      case 2:
        record.fingerprint.high = reader.fixed64();
        break;
      case 3:
        record.fingerprint.low = reader.fixed64();
        break;
      case 4:
        record.fingerprint.form = static_cast<Fingerprint::Form>(reader.varint());
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return malformed("nonce row", reader);
  if (!record.id) return Status(StatusCode::kCorruption, "nonce row names no procedure");
  return record;
}

std::string limit_key(const ResourceKey& key) {
  return std::string(kLimitKeyPrefix) + static_cast<char>(key.cls) + key.name;
}

std::optional<ResourceKey> parse_limit_key(std::string_view row_key) {
  if (!row_key.starts_with(kLimitKeyPrefix) || row_key.size() == kLimitKeyPrefix.size()) {
    return std::nullopt;
  }
  row_key.remove_prefix(kLimitKeyPrefix.size());
  return ResourceKey{static_cast<ResourceClass>(row_key.front()), std::string(row_key.substr(1))};
}

void encode_limit(std::uint32_t limit, std::string& out) {
  FrameWriter frame(out);
  append_varint_field(out, 1, limit);
  frame.finish();
}

Result<std::uint32_t> decode_limit(std::string_view row) {
  const auto bytes = read_frame(row);
  if (!bytes) return Status(StatusCode::kCorruption, "limit does not match its checksum");
  std::uint64_t limit = 0;
  WireReader reader(*bytes);
  while (reader.next()) {
    if (reader.number() == 1) limit = reader.varint();
  }
  if (!reader.ok()) return malformed("limit", reader);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(limit, UINT32_MAX - 1));
}

void encode_watermark(const Watermark& watermark, std::string& out) {
  PV2_ASSERT(watermark.next_id != 0, "an id is not 0");
  PV2_ASSERT(watermark.age.age >= Duration::zero(), "a store is not younger than nothing");
  FrameWriter frame(out);
  append_varint_field(out, 1, watermark.next_id);
  append_varint_field(out, 2, zigzag(watermark.age.age.count()));
  if (watermark.age.trusted_at) {
    std::string trusted;
    append_varint(trusted, zigzag(watermark.age.trusted_age.count()));
    append_varint(trusted, zigzag(micros(*watermark.age.trusted_at)));
    append_length_delimited(out, 3, trusted);
  }
  frame.finish();
}

Result<Watermark> decode_watermark(std::string_view row) {
  const auto bytes = read_frame(row);
  if (!bytes) return Status(StatusCode::kCorruption, "id watermark does not match its checksum");
  Watermark watermark;
  WireReader reader(*bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case 1:
        watermark.next_id = reader.varint();
        break;
      case 2:
        watermark.age.age = Duration(reader.sint());
        break;
      case 3: {
        WireReader trusted(reader.bytes());
        std::uint64_t age = 0;
        std::uint64_t at = 0;
        if (!trusted.take_varint(age) || !trusted.take_varint(at)) {
          return malformed("id watermark", trusted);
        }
        watermark.age.trusted_age = Duration(unzigzag(age));
        watermark.age.trusted_at = wall_time(unzigzag(at));
        break;
      }
      default:
        break;
    }
  }
  if (!reader.ok()) return malformed("id watermark", reader);
  if (watermark.next_id == 0) {
    return Status(StatusCode::kCorruption, "id watermark says that the next id is 0");
  }
  if (watermark.age.age < Duration::zero()) {
    return Status(StatusCode::kCorruption, "id watermark says that the store is younger than new");
  }
  return watermark;
}

std::string kept_key(Duration age, ProcedureId id) {
  PV2_ASSERT(age >= Duration::zero(), "a store is not younger than nothing");
  std::string key(kKeptKeyPrefix);
  const std::size_t numbers = key.size();
  key.resize(numbers + 16);
  write_big_endian(key.data() + numbers, static_cast<std::uint64_t>(age.count()));
  write_big_endian(key.data() + numbers + 8, id.value);
  return key;
}

void encode_kept(const KeptResult& kept, std::string& out) {
  FrameWriter frame(out);
  append_varint_field(out, 1, kept.bytes);
  if (kept.nonce) {
    append_varint_field(out, 2, kept.nonce.group);
    append_varint_field(out, 3, kept.nonce.value);
  }
  if (kept.found) append_varint_field(out, 4, 1);
  frame.finish();
}

Result<KeptResult> decode_kept(std::string_view key, std::string_view row) {
  if (key.size() != kKeptKeyPrefix.size() + 16) {
    return Status(StatusCode::kCorruption, "the key of the date of a result is not of its size");
  }
  KeptResult kept;
  const std::string_view numbers = key.substr(kKeptKeyPrefix.size());
  kept.age = Duration(static_cast<Duration::rep>(read_big_endian(numbers)));
  kept.id = ProcedureId{read_big_endian(numbers.substr(8))};
  const auto bytes = read_frame(row);
  if (!bytes) {
    return Status(StatusCode::kCorruption, "the date of the result of procedure " +
                                               std::to_string(kept.id.value) +
                                               " does not match its checksum");
  }
  if (kept.age < Duration::zero()) {
    return Status(StatusCode::kCorruption, "the date of a result is before its store began");
  }
  WireReader reader(*bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case 1:
        kept.bytes = reader.varint();
        break;
      case 2:
        kept.nonce.group = reader.varint();
        break;
      case 3:
        kept.nonce.value = reader.varint();
        break;
      case 4:
        kept.found = reader.varint() != 0;
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return malformed("the date of a result", reader);
  return kept;
}

// Rows, keys and frames take about as much again as an ordinary record's engine part.
std::size_t kept_bytes(std::size_t arguments, std::size_t image, std::size_t result,
                       std::size_t owner) noexcept {
  constexpr std::size_t kFraming = 256;
  return kFraming + arguments + image + result + owner;
}

std::size_t header_bytes_max(const Execution& execution) {
  const bool has_locks = !execution.locks.empty();
  std::size_t bytes = 2 * kFrameHeaderBytes + 19 * RowWriter::kFieldMax +
                      (has_locks ? execution.locks.primary().name.size() : 0) +
                      execution.name_of_type().size() + execution.owner.size() +
                      execution.arguments.size();
  for (const LockRequest& request : execution.locks.requests()) {
    bytes += 4 * RowWriter::kFieldMax + request.key.name.size();
  }
  return bytes;
}

void encode_header(const Execution& execution, std::string& out) {
  PV2_ASSERT(execution.id && execution.root != nullptr, "what has a record is in a tree");
  PV2_ASSERT(!execution.name_of_type().empty(), "what has a record has a type");
  const bool has_locks = !execution.locks.empty();
  const std::string_view primary =
      has_locks ? std::string_view(execution.locks.primary().name) : std::string_view();
  RowWriter row(out, header_bytes_max(execution));
  char* const frame = row.open_frame();
  row.varint(header_field::kId, execution.id.value);
  if (execution.parent != nullptr) row.varint(header_field::kParent, execution.parent->id.value);
  row.varint(header_field::kRoot, execution.root->id.value);
  if (execution.nonce) {
    row.varint(header_field::kNonceGroup, execution.nonce.group);
    row.varint(header_field::kNonceValue, execution.nonce.value);
    const Fingerprint& fingerprint = execution.fingerprint;
    row.fixed64(header_field::kFingerprintHigh, fingerprint.high);
    row.fixed64(header_field::kFingerprintLow, fingerprint.low);
    if (fingerprint.form != Fingerprint::Form::kJoined) {
      row.varint(header_field::kFingerprintForm, static_cast<std::uint64_t>(fingerprint.form));
    }
  }
  row.sint(header_field::kSubmitted, micros(execution.submitted));
  row.varint(header_field::kPriority, static_cast<std::uint64_t>(execution.priority));
  if (execution.spawned_at != 0) row.varint(header_field::kSpawnedAt, execution.spawned_at);
  if (execution.reports()) row.varint(header_field::kOnFailure, 1);
  if (execution.undo_order == UndoOrder::kConcurrent) row.varint(header_field::kUndoOrder, 1);
  if (has_locks) {
    row.varint(header_field::kLockScope, static_cast<std::uint64_t>(execution.locks.scope()));
    row.varint(header_field::kPrimaryClass,
               static_cast<std::uint64_t>(execution.locks.primary().cls));
  }
  row.bytes(header_field::kType, execution.name_of_type());
  if (!execution.owner.empty()) row.bytes(header_field::kOwner, execution.owner);
  if (has_locks) row.bytes(header_field::kPrimaryName, primary);
  for (const LockRequest& request : execution.locks.requests()) encode_lock(row, request);
  row.close_frame(frame);
  char* const arguments = row.open_frame();
  row.put_raw(execution.arguments);
  row.close_frame(arguments);
}

bool ends_root(const Execution& execution, const Transition& next) noexcept {
  const bool ends = execution.is_root() && is_finished(next.state);
  PV2_ASSERT(!ends || next.ended_age != Progress::kNotDated, "the end of a root is dated");
  return ends;
}

std::size_t state_bytes_max(const Execution& execution, const Transition& next) {
  const InterruptedMembers* const interrupted = interrupted_of(execution, next);
  std::size_t failure_max = 0;
  if (may_carry_failure(execution.record, next)) {
    const FailureAfter failure = failure_after(execution.record, next);
    failure_max = failure.error.message().size() + failure.parked.message().size() +
                  failure.undo.message().size();
  }
  // Nineteen fields, a message of two, three numbers per entry of the history, two per step to undo
  // and per range.
  const std::size_t numbers_max = 22 + 3 * (History::kCapacity + 1) +
                                  2 * (execution.record.undo.size() + 1) +
                                  2 * (interrupted != nullptr ? interrupted->ranges().size() : 0);
  return 2 * kFrameHeaderBytes + numbers_max * RowWriter::kFieldMax +
         failure.error.message().size() + failure.parked.message().size() +
         failure.undo.message().size() + next.result.size() +
         (next.new_image ? next.image.size() : execution.record.image.size());
}

void encode_state(const Execution& execution, const Transition& next, std::uint32_t ran_step,
                  std::string& out) {
  PV2_ASSERT(!next.parked || !is_finished(next.state), "what has ended is not parked");
  PV2_ASSERT(!next.reported || next.state == ProcedureState::kRolledBack,
             "a failure is reported when it is undone");
  const std::string_view image =
      next.new_image ? std::string_view(next.image) : execution.record.image.view();
  const InterruptedMembers* const interrupted = interrupted_of(execution, next);
  RowWriter row(out, state_bytes_max(execution, next));
  char* const frame = row.open_frame();
  row.varint(state_field::kState, static_cast<std::uint64_t>(next.state));
  row.varint(state_field::kStep, next.step);
  row.varint(state_field::kAttempt, next.attempt);
  row.varint(state_field::kVisits, next.visits);
  row.varint(state_field::kFlags,
             (next.holds_locks ? kHoldsLocks : 0) | (next.no_return ? kNoReturn : 0) |
                 (next.parked ? kParked : 0) | (next.awaits ? kAwaits : 0) |
                 (next.bypassed ? kBypassed : 0) | (next.sent_back ? kSentBack : 0) |
                 (next.reported ? kReported : 0) | (next.unsure ? kUnsure : 0) |
                 (interrupted != nullptr ? kKnowsInterrupted : 0) | (next.audited ? kAudited : 0));
  if (next.deadline) {
    PV2_ASSERT(next.patience >= Duration::zero(), "what is left of a wait is not negative");
    row.sint(state_field::kDeadline, micros(*next.deadline));
    row.sint(state_field::kPatience, next.patience.count());
  }
  row.sint(state_field::kUpdated, micros(next.updated));
  encode_history(row, execution.record.history, next);
  encode_undo_list(row, execution.record, next, ran_step);
  encode_interrupted(row, interrupted);
  if (may_carry_failure(execution.record, next)) {
    const FailureAfter failure = failure_after(execution.record, next);
    encode_error(row, failure);
    encode_undo_error(row, failure.undo);
  }
  if (!next.result.empty()) row.bytes(state_field::kResult, next.result);
  if (ends_root(execution, next)) row.sint(state_field::kEndedAge, next.ended_age.count());
  row.close_frame(frame);
  char* const user = row.open_frame();
  row.put_raw(image);
  row.close_frame(user);
}

// By it the result is found when its time is over.
void insert_date(const Execution& execution, const Transition& last, RowBatch& batch) {
  const std::size_t image = last.new_image ? last.image.size() : execution.record.image.size();
  const KeptResult kept{.age = last.ended_age,
                        .id = execution.id,
                        .nonce = execution.nonce,
                        .bytes = kept_bytes(execution.arguments.size(), image, last.result.size(),
                                            execution.owner.size())};
  std::string row;
  encode_kept(kept, row);
  batch.put(Space::kEngine, kept_key(kept.age, kept.id), row);
}

// A start finds no trace of it among what is live.
void move_to_results(const Execution& execution, const Transition& last, std::uint32_t ran_step,
                     RowBatch& batch) {
  batch.erase(Space::kProcedure, procedure_key(execution.id, RowKind::kHeader));
  batch.erase(Space::kProcedure, procedure_key(execution.id, RowKind::kState));
  batch.put_with(Space::kResult, result_key(execution.id), [&](std::string& out) {
    encode_header(execution, out);
    encode_state(execution, last, ran_step, out);
  });
  insert_date(execution, last, batch);
}

// The last record was an end that an abort takes back.
void move_back(const Execution& execution, const Transition& next, std::uint32_t ran_step,
               RowBatch& batch) {
  batch.erase(Space::kResult, result_key(execution.id));
  batch.put_with(Space::kProcedure, procedure_key(execution.id, RowKind::kHeader),
                 [&](std::string& out) { encode_header(execution, out); });
  batch.put_with(Space::kProcedure, procedure_key(execution.id, RowKind::kState),
                 [&](std::string& out) { encode_state(execution, next, ran_step, out); });
}

void insert_rows(const Execution& execution, const Transition& first, RowBatch& batch) {
  if (ends_root(execution, first) && first.in_results) {
    return move_to_results(execution, first, 0, batch);
  }
  batch.insert_with(Space::kProcedure, procedure_key(execution.id, RowKind::kHeader),
                    [&](std::string& out) { encode_header(execution, out); });
  batch.insert_with(Space::kProcedure, procedure_key(execution.id, RowKind::kState),
                    [&](std::string& out) { encode_state(execution, first, 0, out); });
  if (ends_root(execution, first)) insert_date(execution, first, batch);
}

void update_state(const Execution& execution, const Transition& next, std::uint32_t ran_step,
                  RowBatch& batch) {
  const bool had_ended = execution.record.ended_age != Progress::kNotDated;
  if (had_ended) batch.erase(Space::kEngine, kept_key(execution.record.ended_age, execution.id));
  if (ends_root(execution, next) && next.in_results) {
    return move_to_results(execution, next, ran_step, batch);
  }
  if (ends_root(execution, next)) insert_date(execution, next, batch);
  if (execution.record.in_results) return move_back(execution, next, ran_step, batch);
  batch.update_with(Space::kProcedure, procedure_key(execution.id, RowKind::kState),
                    [&](std::string& out) { encode_state(execution, next, ran_step, out); });
}

void redate_end(const Execution& execution, Transition& last, Duration age, std::uint32_t ran_step,
                RowBatch& batch) {
  PV2_ASSERT(ends_root(execution, last), "what is dated is the end of a root");
  const std::string date = kept_key(last.ended_age, execution.id);
  const bool had_ended = execution.record.ended_age != Progress::kNotDated;
  const std::string taken_back =
      had_ended ? kept_key(execution.record.ended_age, execution.id) : date;
  const auto header = procedure_key(execution.id, RowKind::kHeader);
  const auto state = procedure_key(execution.id, RowKind::kState);
  const auto result = result_key(execution.id);
  RowBatch anew;
  batch.for_each(
      [&](RowOperation operation, Space space, std::string_view key, std::string_view value) {
        const bool is_of_record = (space == Space::kProcedure && (key == header || key == state)) ||
                                  (space == Space::kResult && key == result) ||
                                  (space == Space::kEngine && (key == date || key == taken_back));
        if (!is_of_record) anew.add(operation, space, key, value);
      });
  last.ended_age = age;
  update_state(execution, last, ran_step, anew);
  batch = std::move(anew);
}

Status decode_header(std::string_view row, Execution& execution, HeaderFacts& facts) {
  const auto engine = split_row(row, execution.arguments, facts.user);
  if (!engine.ok()) return engine.status();
  execution.fingerprint.form = Fingerprint::Form::kJoined;  // where nothing else is said
  std::vector<LockRequest> locks;
  ResourceKey primary;
  auto scope = LockScope::kOperation;
  NamedValues named;
  WireReader reader(*engine);
  while (reader.next()) {
    switch (reader.number()) {
      case header_field::kId:
        execution.id = ProcedureId{reader.varint()};
        break;
      case header_field::kParent:
        facts.parent = ProcedureId{reader.varint()};
        break;
      case header_field::kRoot:
        facts.root = ProcedureId{reader.varint()};
        break;
      case header_field::kType:
        facts.type_name = reader.bytes();
        break;
      case header_field::kNonceGroup:
        execution.nonce.group = reader.varint();
        break;
      case header_field::kNonceValue:
        execution.nonce.value = reader.varint();
        break;
      case header_field::kFingerprintHigh:
        execution.fingerprint.high = reader.fixed64();
        break;
      case header_field::kFingerprintLow:
        execution.fingerprint.low = reader.fixed64();
        break;
      case header_field::kFingerprintForm:
        named.read(reader, execution.fingerprint.form);
        break;
      case header_field::kSubmitted:
        execution.submitted = wall_time(reader.sint());
        break;
      case header_field::kOwner:
        execution.owner = reader.bytes();
        break;
      case header_field::kLock: {
        auto lock = decode_lock(reader.bytes());
        if (!lock.ok()) return lock.status();
        locks.push_back(*std::move(lock));
        break;
      }
      case header_field::kLockScope:
        named.read(reader, scope);
        break;
      case header_field::kPrimaryClass:
        named.read(reader, primary.cls);
        break;
      case header_field::kPrimaryName:
        primary.name = reader.bytes();
        break;
      case header_field::kPriority:
        named.read(reader, execution.priority);
        break;
      case header_field::kSpawnedAt:
        execution.spawned_at = reader.varint();
        break;
      case header_field::kOnFailure:
        execution.on_failure = reader.varint() != 0 ? OnFailure::kReport : OnFailure::kFailTree;
        break;
      case header_field::kUndoOrder:
        execution.undo_order = reader.varint() != 0 ? UndoOrder::kConcurrent : UndoOrder::kReverse;
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return malformed("header", reader);
  if (Status unknown = named.status("header"); !unknown.ok()) return unknown;
  if (!execution.id || !facts.root) {
    return Status(StatusCode::kCorruption, "header names no procedure or no root");
  }
  if (facts.type_name.empty()) return Status(StatusCode::kCorruption, "header names no type");
  // The set is built again through its own verbs; the primary key goes first so that it stays
  // primary.
  if (!locks.empty()) {
    for (const LockRequest& request : locks) {
      if (request.key == primary) execution.locks.key(request.key, request.mode);
    }
    for (const LockRequest& request : locks) execution.locks.key(request.key, request.mode);
    execution.locks.scope(scope);
  }
  return Status();
}

Status decode_state(std::string_view row, CommitSequence sequence, Execution& execution,
                    PartStatus& user) {
  Record& record = execution.record;
  const auto engine = split_row(row, record.image, user);
  if (!engine.ok()) return engine.status();
  std::uint64_t state = 0;
  std::uint64_t flags = 0;
  auto error_code = StatusCode::kOk;
  std::string error_message;
  auto parked_code = StatusCode::kOk;
  std::string parked_message;
  std::string_view undo;
  std::string_view history;
  std::string_view interrupted;
  std::string_view undo_error;
  CommitSequence failure_sequence = sequence;
  NamedValues named;
  WireReader reader(*engine);
  while (reader.next()) {
    switch (reader.number()) {
      case state_field::kState:
        state = reader.varint();
        break;
      case state_field::kStep:
        record.step = static_cast<std::uint32_t>(reader.varint());
        break;
      case state_field::kAttempt:
        record.attempt = static_cast<std::uint32_t>(reader.varint());
        break;
      case state_field::kVisits:
        record.visits = reader.varint();
        break;
      case state_field::kFlags:
        flags = reader.varint();
        break;
      case state_field::kDeadline:
        record.deadline = wall_time(reader.sint());
        break;
      case state_field::kPatience:
        record.patience = Duration(reader.sint());
        break;
      case state_field::kUndo:
        undo = reader.bytes();
        break;
      case state_field::kHistory:
        history = reader.bytes();
        break;
      case state_field::kInterrupted:
        interrupted = reader.bytes();
        break;
      case state_field::kUndoError:
        undo_error = reader.bytes();
        break;
      case state_field::kErrorCode:
        named.read(reader, error_code);
        break;
      case state_field::kErrorMessage:
        error_message = reader.bytes();
        break;
      case state_field::kParkedCode:
        named.read(reader, parked_code);
        break;
      case state_field::kParkedMessage:
        parked_message = reader.bytes();
        break;
      case state_field::kFailureSequence:
        failure_sequence = CommitSequence{reader.varint()};
        break;
      case state_field::kUpdated:
        record.updated = wall_time(reader.sint());
        break;
      case state_field::kResult:
        record.result = reader.bytes();
        break;
      case state_field::kEndedAge:
        record.ended_age = Duration(std::max<std::int64_t>(reader.sint(), 0));
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return malformed("state", reader);
  if (Status unknown = named.status("state"); !unknown.ok()) return unknown;
  Status list = decode_undo_list(undo, sequence, record.undo);
  if (list.ok()) list = decode_history(history, record.updated, record.history);
  if (list.ok() && (flags & kKnowsInterrupted) != 0) {
    record.interrupted = std::make_unique<InterruptedMembers>();
    list = decode_interrupted(interrupted, *record.interrupted);
  }
  Status undo_failure;
  if (list.ok()) list = decode_undo_error(undo_error, undo_failure);
  if (!list.ok()) return list;
  if (state < static_cast<std::uint64_t>(ProcedureState::kRunnable) ||
      state > static_cast<std::uint64_t>(ProcedureState::kFailed)) {
    return Status(StatusCode::kCorruption,
                  "state number " + std::to_string(state) + " is none that is ever stored");
  }
  record.state = static_cast<ProcedureState>(state);
  record.holds_locks = (flags & kHoldsLocks) != 0;
  record.no_return = (flags & kNoReturn) != 0;
  record.parked = (flags & kParked) != 0;
  record.awaits = (flags & kAwaits) != 0;
  record.bypassed = (flags & kBypassed) != 0;
  record.sent_back = (flags & kSentBack) != 0;
  record.reported = (flags & kReported) != 0;
  record.unsure = (flags & kUnsure) != 0;
  const bool may_be_parked =
      record.state == ProcedureState::kRunnable || record.state == ProcedureState::kFailed;
  if (record.parked && !may_be_parked) {
    return Status(StatusCode::kCorruption,
                  "state says that it is parked, and that it waits or has ended");
  }
  if (record.reported && record.state != ProcedureState::kRolledBack) {
    return Status(StatusCode::kCorruption,
                  "state says that its failure was reported, and not that it is undone");
  }
  if ((flags & kAudited) != 0) execution.audited = true;
  if (error_code != StatusCode::kOk || parked_code != StatusCode::kOk || !undo_failure.ok()) {
    record.failure = std::make_unique<Failure>();
    record.failure->sequence = failure_sequence;
    if (error_code != StatusCode::kOk) {
      record.failure->error = Status(error_code, std::move(error_message));
    }
    if (parked_code != StatusCode::kOk) {
      record.failure->parked = Status(parked_code, std::move(parked_message));
    }
    record.failure->undo = std::move(undo_failure);
  }
  return Status();
}

}  // namespace pv2
