// SPDX-License-Identifier: Apache-2.0
//
// A plot for every procedure that somebody submits: the list for tests that every procedure has to
// pass. A test compares the procedures that run in them with those that a host registers.

#pragma once

#include <string>
#include <vector>

#include "procedure_plot.h"

namespace pv2::testing {

/// A plain value.
struct NamedPlot {
  std::string name;
  ProcedurePlot plot;
};

[[nodiscard]] std::vector<NamedPlot> plots_of_tables();
[[nodiscard]] std::vector<NamedPlot> plots_of_namespaces();
[[nodiscard]] std::vector<NamedPlot> plots_of_peers();
[[nodiscard]] std::vector<NamedPlot> plots_of_regions();
[[nodiscard]] std::vector<NamedPlot> plots_of_servers();
/// All of them.
[[nodiscard]] std::vector<NamedPlot> every_plot();

}  // namespace pv2::testing
