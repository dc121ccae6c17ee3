// SPDX-License-Identifier: Apache-2.0
//
// Command: a command of the shell as data: its name, what it takes, its help, and the function that
// answers it. Help, completion, the checks of arguments and dispatch all read the same entry, so
// they cannot disagree.

#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "output/answer.h"

namespace pv2::shell {

class Shell;
struct Call;

/// What an argument names; decides how it is checked and completed.
enum class Takes : std::uint8_t {
  kTable,
  kNamespace,
  kRegion,
  kTableOrRegion,
  kRow,
  kColumn,  ///< 'family:qualifier', or 'family:' for an empty qualifier.
  kFamily,  ///< 'f', or a map with NAME.
  kBytes,   ///< A value of a cell, or a key.
  kNumber,
  kProcedure,  ///< The number of a procedure.
  kServer,     ///< A live server, by its host or its whole name.
  kPeer,
  kCommand,
};

/// An argument that has a place.
struct Argument {
  enum class Count : std::uint8_t { kOne, kOptional, kMany };
  std::string_view name;
  Takes takes = Takes::kBytes;
  Count count = Count::kOne;  ///< The last one only may be optional, or many (one or more).
};

/// An argument that has a name: LIMIT => 10.
struct OptionSpec {
  enum class Shape : std::uint8_t {
    kText,
    kNumber,  ///< Not negative.
    kTexts,   ///< A list of texts, or one text.
    kFlag,    ///< ALL alone, or ALL => true, or ALL => false.
  };
  std::string_view name;
  Shape shape = Shape::kText;
  std::string_view help;
  std::vector<std::string_view> choices{};  ///< Of a text: nothing else is legal. Empty: any.
  std::uint64_t number_max = INT64_MAX;     ///< Of a number.
};

/// What a statement changes, which decides the options that it takes besides its own.
enum class Effect : std::uint8_t {
  kNone,       ///< Nothing, or only processes of this shell.
  kTwice,      ///< Something that is the same when it is done twice; it has no nonce.
  kRows,       ///< Rows, under a nonce.
  kProcedure,  ///< It submits a procedure, under a nonce.
  kOrder,      ///< It orders something about a procedure, under a nonce.
};

/// An entry of the table.
struct Command {
  std::string_view name;
  std::string_view group;    ///< The heading under which help lists it.
  std::string_view summary;  ///< One sentence.
  std::string_view example;  ///< A statement that is legal.
  std::vector<Argument> arguments{};
  std::vector<OptionSpec> options{};
  Effect effect = Effect::kNone;
  /// Of kProcedure: whether the statement is over when its procedure is.
  bool waits_for_end = true;
  Answer (*run)(Shell& shell, const Call& call) = nullptr;
};

/// All commands, in the order of help. Made once, never changed; any thread may read it.
[[nodiscard]] std::span<const Command> commands();
/// nullptr: there is none of that name.
[[nodiscard]] const Command* find_command(std::string_view name);
/// The command with the most similar name; empty: none is similar.
[[nodiscard]] std::string_view nearest_command(std::string_view name);
/// The options of a command: its own, and those that its effect brings.
[[nodiscard]] std::vector<OptionSpec> options_of(const Command& command);

}  // namespace pv2::shell
