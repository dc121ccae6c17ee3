// SPDX-License-Identifier: Apache-2.0
//
// Commands that change the rows of a table.

#include <pv2/procedures/table.h>

#include "commands/row_write.h"
#include "commands/subjects.h"

namespace pv2::shell {

namespace {

using cluster::Mutation;
using cluster::MutationKind;

Mutation mutation_of(MutationKind kind, const Call& call) {
  auto [family, qualifier] = parse_column(call.text(2));
  Mutation mutation{.kind = kind, .row = call.text(1)};
  mutation.family = std::move(family);
  mutation.qualifier = std::move(qualifier);
  return mutation;
}

Written write_one(Shell& shell, const Call& call, Mutation mutation) {
  return write_rows(shell, call, parse_table_name(call.text(0)), {std::move(mutation)});
}

Answer put(Shell& shell, const Call& call) {
  Mutation mutation = mutation_of(MutationKind::kPut, call);
  mutation.value = call.text(3);
  return write_one(shell, call, std::move(mutation)).answer;
}

// The new value of the cell is a row of the answer.
Answer with_value(Written written) {
  if (!written.answer.ok() || written.result.values.empty()) return written.answer;
  written.answer.columns = {"VALUE"};
  written.answer.add_row({Bytes{written.result.values.front()}});
  return written.answer;
}

Answer append(Shell& shell, const Call& call) {
  Mutation mutation = mutation_of(MutationKind::kAppend, call);
  mutation.value = call.text(3);
  return with_value(write_one(shell, call, std::move(mutation)));
}

Answer incr(Shell& shell, const Call& call) {
  Mutation mutation = mutation_of(MutationKind::kIncrement, call);
  mutation.amount = call.has(3) ? call.number(3) : 1;
  return with_value(write_one(shell, call, std::move(mutation)));
}

Answer delete_cell(Shell& shell, const Call& call) {
  return write_one(shell, call, mutation_of(MutationKind::kDelete, call)).answer;
}

Answer delete_row(Shell& shell, const Call& call) {
  return write_one(shell, call, {.kind = MutationKind::kDeleteRow, .row = call.text(1)}).answer;
}

}  // namespace

void add_row_commands(std::vector<Command>& table) {
  const Argument of_table{"table", Takes::kTable};
  const Argument of_row{"row", Takes::kRow};
  const Argument of_column{"column", Takes::kColumn};
  table.push_back({.name = "put",
                   .group = "rows",
                   .summary = "Writes one cell.",
                   .example = "put 't', 'row1', 'f:q', 'value'",
                   .arguments = {of_table, of_row, of_column, {"value", Takes::kBytes}},
                   .effect = Effect::kRows,
                   .run = put});
  table.push_back({.name = "append",
                   .group = "rows",
                   .summary = "Adds bytes to the end of a cell, and prints what it has then.",
                   .example = "append 't', 'row1', 'f:q', 'more'",
                   .arguments = {of_table, of_row, of_column, {"value", Takes::kBytes}},
                   .effect = Effect::kRows,
                   .run = append});
  table.push_back(
      {.name = "incr",
       .group = "rows",
       .summary = "Adds to the decimal number in a cell, and prints the sum. 1 unless said.",
       .example = "incr 't', 'row1', 'f:n', 5",
       .arguments =
           {of_table, of_row, of_column, {"amount", Takes::kNumber, Argument::Count::kOptional}},
       .effect = Effect::kRows,
       .run = incr});
  table.push_back({.name = "delete",
                   .group = "rows",
                   .summary = "Removes one cell.",
                   .example = "delete 't', 'row1', 'f:q'",
                   .arguments = {of_table, of_row, of_column},
                   .effect = Effect::kRows,
                   .run = delete_cell});
  table.push_back({.name = "deleteall",
                   .group = "rows",
                   .summary = "Removes a row.",
                   .example = "deleteall 't', 'row1'",
                   .arguments = {of_table, of_row},
                   .effect = Effect::kRows,
                   .run = delete_row});
}

}  // namespace pv2::shell
