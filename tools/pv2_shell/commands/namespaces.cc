// SPDX-License-Identifier: Apache-2.0
//
// Commands about namespaces: each change is a procedure of the master.

#include <pv2/procedures/create_namespace.h>
#include <pv2/procedures/delete_namespace.h>
#include <pv2/procedures/modify_namespace.h>

#include "commands/call.h"
#include "commands/procedure_run.h"
#include "commands/subjects.h"

namespace pv2::shell {
namespace {

template <class P>
Answer write_namespace(Shell& shell, const Call& call) {
  NamespaceRow row{.name = call.text(0), .max_tables = call.option_number("MAX_TABLES", 0)};
  return run_procedure(shell, call, submission_of(P(ports_elsewhere(), std::move(row))));
}

Answer drop_namespace(Shell& shell, const Call& call) {
  return run_procedure(shell, call,
                       submission_of(DeleteNamespace(ports_elsewhere(), call.text(0))));
}

Answer list_namespaces(Shell& shell, const Call& call) {
  const Duration timeout = call.timeout(Shell::kCallTime);
  const auto rows = shell.ask<std::vector<NamespaceRow>>(
      [&](auto done) { shell.client().namespaces(std::move(done), Shell::beyond(timeout)); },
      timeout);
  if (!rows.ok()) return rows.status();
  Answer answer;
  answer.columns = {"NAMESPACE", "MAX TABLES"};
  for (const NamespaceRow& row : *rows) {
    answer.add_row({row.name, row.max_tables == 0 ? Field("any number") : Field(row.max_tables)});
  }
  return answer;
}

}  // namespace

void add_namespace_commands(std::vector<Command>& table) {
  const Argument of_namespace{"namespace", Takes::kNamespace};
  const OptionSpec max_tables{"MAX_TABLES", OptionSpec::Shape::kNumber,
                              "how many tables it may have; 0: any number"};
  table.push_back({.name = "create_namespace",
                   .group = "namespaces",
                   .summary = "Makes a namespace.",
                   .example = "create_namespace 'shop', MAX_TABLES => 10",
                   .arguments = {of_namespace},
                   .options = {max_tables},
                   .effect = Effect::kProcedure,
                   .run = write_namespace<CreateNamespace>});
  table.push_back({.name = "alter_namespace",
                   .group = "namespaces",
                   .summary = "Changes how many tables a namespace may have.",
                   .example = "alter_namespace 'shop', MAX_TABLES => 20",
                   .arguments = {of_namespace},
                   .options = {max_tables},
                   .effect = Effect::kProcedure,
                   .run = write_namespace<ModifyNamespace>});
  table.push_back({.name = "drop_namespace",
                   .group = "namespaces",
                   .summary = "Removes a namespace that has no table.",
                   .example = "drop_namespace 'shop'",
                   .arguments = {of_namespace},
                   .effect = Effect::kProcedure,
                   .run = drop_namespace});
  table.push_back({.name = "list_namespaces",
                   .group = "namespaces",
                   .summary = "Lists namespaces.",
                   .example = "list_namespaces",
                   .run = list_namespaces});
}

}  // namespace pv2::shell
