// SPDX-License-Identifier: Apache-2.0
//
// The parts of the table of commands, one for each subject. Each function adds its commands.

#pragma once

#include <vector>

#include "commands/command.h"

namespace pv2::shell {

void add_row_commands(std::vector<Command>& table);
void add_row_reading_commands(std::vector<Command>& table);
void add_table_commands(std::vector<Command>& table);
void add_region_commands(std::vector<Command>& table);
void add_namespace_commands(std::vector<Command>& table);
void add_peer_commands(std::vector<Command>& table);
void add_procedure_commands(std::vector<Command>& table);
void add_procedure_detail_commands(std::vector<Command>& table);
void add_repair_commands(std::vector<Command>& table);
void add_lock_commands(std::vector<Command>& table);
void add_server_commands(std::vector<Command>& table);
void add_process_commands(std::vector<Command>& table);
void add_help_commands(std::vector<Command>& table);

}  // namespace pv2::shell
