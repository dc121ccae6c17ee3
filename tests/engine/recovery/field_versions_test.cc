// SPDX-License-Identifier: Apache-2.0
//
// Two versions of one program take turns on one store. Each version keeps the fields of the other
// that it does not know. A field that means something else to them is found before it is read. The
// versions are classes with the same kType.

#include <pv2/engine/limits.h>

#include <array>
#include <chrono>
#include <utility>

#include "records/schema_rows.h"
#include "support/engine_world.h"

namespace pv2::testing::field_versions_test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kOrder = "test.Order";

// A version of test.Order with the fields of `Fields`. It ends with its third signal.
template <class Fields>
class Order final : public Procedure {
 public:
  static constexpr std::string_view kType = kOrder;
  Order() = default;
  explicit Order(Fields values) : values_(std::move(values)) {}
  void fields(auto& f) {
    f.arg(1, "order", order_);
    f(2, "step", step_);
    values_.fields(f);
  }
  Outcome execute(StepContext& ctx) override {
    if (ctx.signal("go") == nullptr) return wait();
    return ++step_ < 3 ? again() : done(values_.shown());
  }
  Outcome rollback(StepContext&) override { return undone(); }

 private:
  std::string order_ = "o-42";
  std::uint32_t step_ = 0;
  Fields values_;
};

// One field, number 3, of any type.
template <class T>
struct One {
  T value{};
  void fields(auto& f) { f(3, "patience", value); }
  [[nodiscard]] std::string shown() const { return {}; }
};
template <class T>
struct OneArgument {
  T value{};
  void fields(auto& f) { f.arg(3, "patience", value); }
  [[nodiscard]] std::string shown() const { return {}; }
};
struct Nothing {
  void fields(auto& /*f*/) {}
  [[nodiscard]] std::string shown() const { return {}; }
};
struct Renamed {
  std::int32_t value = 0;
  void fields(auto& f) { f(3, "forbearance", value); }
  [[nodiscard]] std::string shown() const { return std::to_string(value); }
};
struct Address {
  std::string town = "?";
  std::string street = "?";
  void fields(auto& f) {
    f(1, "town", town);
    f(2, "street", street);
  }
};
struct ShortAddress {
  std::string town = "?";
  void fields(auto& f) { f(1, "town", town); }
};
struct LongAddress {
  std::uint64_t town = 0;
  void fields(auto& f) { f(1, "town", town); }
};
template <class A>
struct Newer {
  A address;
  std::string note = "?";
  std::vector<std::int64_t> codes = {-1};
  void fields(auto& f) {
    f(4, "address", address);
    f(5, "note", note);
    f(6, "codes", codes);
  }
  [[nodiscard]] std::string shown() const {
    return address.town + "/" + address.street + "/" + note + "/" + std::to_string(codes.size());
  }
};
struct Older {
  ShortAddress address;
  void fields(auto& f) { f(4, "address", address); }
  [[nodiscard]] std::string shown() const { return address.town; }
};

template <class Fields>
ExecutorOptions with(EngineWorld& engine) {
  ExecutorOptions options = engine.options();
  options.registry = ProcedureRegistry();
  options.registry.add<Order<Fields>>();
  return options;
}

template <class Fields>
ProcedureId submit(EngineWorld& engine, Fields values = {}) {
  const auto submitted = engine.executor().submit(Order<Fields>(std::move(values)));
  REQUIRE(submitted.status().to_string() == "OK");
  engine.run();
  return submitted->id;
}

void go(EngineWorld& engine, ProcedureId id) {
  REQUIRE(engine.executor().signal(id, "go").to_string() == "OK");
  engine.run();
}

// What open() says when `Now` follows `Before`, with one procedure live.
template <class Before, class Now>
Status change() {
  EngineWorld engine;
  engine.open(with<Before>(engine));
  submit<Before>(engine);
  engine.close();
  const std::size_t rows = engine.disk->rows();
  auto opened = ProcedureExecutor::open(with<Now>(engine));
  if (opened.ok()) return Status();
  CHECK(engine.disk->rows() == rows);
  engine.open(with<Before>(engine));  // the version that wrote it may go on
  return opened.status();
}
template <class Before, class Now>
Status change_type() {
  return change<One<Before>, One<Now>>();
}

enum class Plain { kA = 1 };
enum class Small : std::uint8_t { kA = 1 };

// Many types.
template <int kNumber>
class Numbered final : public Procedure {
 public:
  static constexpr std::array<char, 3> kName{'t', 'A' + kNumber, '\0'};
  static constexpr std::string_view kType{kName.data()};
  void fields(auto& f) { f.arg(1, "name", name_); }
  Outcome execute(StepContext& /*ctx*/) override { return done(); }
  Outcome rollback(StepContext& /*ctx*/) override { return undone(); }

 private:
  std::string name_;
};
template <int... kNumbers>
void register_numbered(ProcedureRegistry& registry,
                       std::integer_sequence<int, kNumbers...> /*numbers*/) {
  (registry.add<Numbered<kNumbers>>(), ...);
}

// Its schema fits into no small batch.
class LongName final : public Procedure {
 public:
  static constexpr std::string_view kType = "test.LongName";
  void fields(auto& f) {
    static const std::string name(limits::kBatchBytesMin, 'n');
    f.arg(1, name, value_);
  }
  Outcome execute(StepContext& /*ctx*/) override { return done(); }
  Outcome rollback(StepContext& /*ctx*/) override { return undone(); }

 private:
  std::uint32_t value_ = 0;
};

}  // namespace

TEST_CASE("an older version keeps the fields that it does not know, over its own records") {
  EngineWorld engine;
  engine.open(with<Newer<Address>>(engine));
  const ProcedureId id = submit<Newer<Address>>(engine, {{"Ulm", "Main"}, "fragile", {}});
  go(engine, id);

  engine.open(with<Older>(engine));
  engine.run();
  go(engine, id);           // a record of the older version
  engine.crash_and_open();  // without the type: the rows stay as they are
  engine.open(with<Newer<Address>>(engine));
  engine.run();
  go(engine, id);

  CHECK(engine.result(id).result == "Ulm/Main/fragile/0");
}

TEST_CASE("a field whose type changes its meaning is refused by name, with both meanings") {
  const Status unit = change_type<std::chrono::seconds, std::chrono::milliseconds>();
  CHECK(unit.code() == StatusCode::kFailedPrecondition);
  CHECK_THAT(unit.to_string(),
             ContainsSubstring("field 3 was \"patience\", a signed integer of s"));
  CHECK_THAT(unit.to_string(), ContainsSubstring("is \"patience\", a signed integer of ms"));
  CHECK_THAT(unit.to_string(), ContainsSubstring("test.Order"));
  CHECK_THAT(unit.to_string(), ContainsSubstring("accept_field_changes"));

  const Status sign = change_type<std::int32_t, std::uint32_t>();
  CHECK_THAT(sign.to_string(), ContainsSubstring("was \"patience\", a signed integer to"));
  CHECK_THAT(sign.to_string(), ContainsSubstring("is \"patience\", an unsigned integer to"));

  CHECK_FALSE(change_type<std::int32_t, Plain>().ok());
  CHECK_FALSE(change_type<std::int64_t, std::chrono::seconds>().ok());
  CHECK_FALSE(change_type<std::chrono::microseconds, WallTime>().ok());
  CHECK_FALSE(change_type<float, double>().ok());
  CHECK_FALSE(change_type<std::string, ShortAddress>().ok());
  CHECK_FALSE(change_type<std::vector<std::int32_t>, std::int32_t>().ok());
  CHECK_FALSE(change_type<std::vector<std::int32_t>, std::vector<std::uint32_t>>().ok());
  CHECK_FALSE(change_type<std::map<std::string, std::int32_t>,  // NOLINT
                          std::map<std::string, std::uint32_t>>()
                  .ok());
  CHECK_FALSE((change<One<std::string>, OneArgument<std::string>>()).ok());
  const Status deep = change_type<ShortAddress, LongAddress>();
  CHECK_THAT(deep.to_string(), ContainsSubstring("field 3.1 was \"town\", bytes"));
}

TEST_CASE("a change that docs/fields.md allows needs no acceptance") {
  CHECK(change_type<std::int32_t, std::int64_t>().ok());
  CHECK(change_type<std::uint32_t, std::uint64_t>().ok());
  CHECK(change_type<bool, std::uint32_t>().ok());
  CHECK(change_type<Small, std::uint32_t>().ok());
  CHECK(change_type<std::uint64_t, ProcedureId>().ok());
  CHECK(change_type<std::int32_t, std::optional<std::int32_t>>().ok());
  CHECK(change_type<std::optional<std::int32_t>, std::int32_t>().ok());
  CHECK(change_type<std::int32_t, std::vector<std::int32_t>>().ok());
  CHECK(change_type<std::pair<std::string, std::string>, Address>().ok());
  CHECK(change_type<ShortAddress, Address>().ok());
  CHECK((change<One<std::int32_t>, Renamed>()).ok());
  CHECK((change<One<std::int32_t>, Nothing>()).ok());
  CHECK((change<Nothing, One<std::int32_t>>()).ok());
}

TEST_CASE("a field number that was retired is refused for a field of another meaning") {
  EngineWorld engine;
  engine.open(with<One<std::int32_t>>(engine));
  submit<One<std::int32_t>>(engine);
  engine.open(with<Nothing>(engine));  // the field is removed while a procedure is live
  engine.close();
  CHECK(ProcedureExecutor::open(with<One<std::string>>(engine)).status().code() ==
        StatusCode::kFailedPrecondition);
}

TEST_CASE("a change of meaning that is accepted by name is the meaning of the field from then on") {
  EngineWorld engine;
  engine.open(with<One<std::int32_t>>(engine));
  const ProcedureId id = submit<One<std::int32_t>>(engine, {4});
  ExecutorOptions options = with<One<std::uint32_t>>(engine);
  options.accept_field_changes = {std::string(kOrder)};
  engine.open(std::move(options));
  CHECK_THAT(engine.log_lines.back(), ContainsSubstring("accept_field_changes"));
  CHECK_THAT(engine.describe(id).fields, ContainsSubstring("\"patience\":8"));

  engine.open(with<One<std::uint32_t>>(engine));
  engine.close();
  CHECK_FALSE(ProcedureExecutor::open(with<One<std::int32_t>>(engine)).ok());
}

TEST_CASE("a change of meaning is taken over and logged if no record of its type is live") {
  EngineWorld engine;
  engine.open(with<One<std::int32_t>>(engine));
  const ProcedureId id = submit<One<std::int32_t>>(engine);
  for (int i = 0; i < 3; ++i) go(engine, id);
  CHECK(engine.executor().inspect().live_procedures() == 0);

  engine.open(with<One<std::string>>(engine));
  CHECK_THAT(engine.log_lines.back(), ContainsSubstring("none is live"));
  submit<One<std::string>>(engine);
  engine.close();
  CHECK_FALSE(ProcedureExecutor::open(with<One<std::int32_t>>(engine)).ok());
}

TEST_CASE("a damaged schema row is refused by name, and a store without schema rows is accepted") {
  EngineWorld engine;
  engine.open(with<One<std::int32_t>>(engine));
  submit<One<std::int32_t>>(engine);
  engine.close();
  engine.disk->put(Space::kEngine, schema_key(kOrder), "no frame");
  const Status damaged = ProcedureExecutor::open(with<One<std::int32_t>>(engine)).status();
  CHECK(damaged.code() == StatusCode::kCorruption);
  CHECK_THAT(damaged.to_string(), ContainsSubstring("schema of 'test.Order'"));

  engine.disk->erase(Space::kEngine, schema_key(kOrder));  // as an older pv2 has left it
  engine.open(with<One<std::int32_t>>(engine));
  CHECK(engine.disk->get(Space::kEngine, schema_key(kOrder)).has_value());
}

TEST_CASE("a schema row that says the same is not written again") {
  EngineWorld engine;
  engine.open(with<One<std::int32_t>>(engine));
  const auto is_schema = [](const FaultStore::Passed& row) {
    return row.space == Space::kEngine && row.operation == RowOperation::kPut;
  };
  engine.open(with<One<std::int32_t>>(engine));
  const auto trace = engine.faults().trace();
  CHECK(std::count_if(trace.begin(), trace.end(), is_schema) == 1);  // the watermark
}

TEST_CASE("the schemas of many types are written before open() answers, however small a batch is") {
  EngineWorld engine;
  engine.store_options.limits = {.batch_operations = limits::kBatchOperationsMin,
                                 .batch_bytes = limits::kBatchBytesMin};
  const auto options = [&] {
    ExecutorOptions options = engine.options();
    register_numbered(options.registry, std::make_integer_sequence<int, 20>());
    return options;
  };
  engine.open(options());
  const ExecutorOptions all = options();
  for (const auto& [name, type] : all.registry.types()) {
    CHECK(engine.disk->get(Space::kEngine, schema_key(name)).has_value());
  }
  engine.open(options());
  CHECK(engine.faults().commits() == 1);
}

TEST_CASE("an open() whose store has no room for the schema of a type is refused") {
  EngineWorld engine;
  engine.store_options.limits = {.batch_operations = limits::kBatchOperationsMin,
                                 .batch_bytes = limits::kBatchBytesMin};
  ExecutorOptions options = engine.options();
  options.registry.add<LongName>();
  const Status refused = ProcedureExecutor::open(std::move(options)).status();
  CHECK(refused.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(refused.to_string(), ContainsSubstring("schema:test.LongName"));
}

}  // namespace pv2::testing::field_versions_test
