// SPDX-License-Identifier: Apache-2.0
//
// Looks through the signals of a procedure. Bytes that are no report are passed over.

#include "remote_report.h"

#include <pv2/base/fields.h>

#include <string>
#include <utility>

namespace pv2 {

std::vector<RemoteReport> all_reports(StepContext& ctx) {
  std::vector<RemoteReport> reports;
  while (const std::string* const payload = ctx.signal(kReportSignal)) {
    RemoteReport report;
    if (decode_fields(report, FieldSelection::kAll, *payload).ok()) {
      reports.push_back(std::move(report));
    }
  }
  return reports;
}

std::optional<RemoteReport> find_report(const std::vector<RemoteReport>& reports,
                                        const RemoteOperation& operation) {
  for (const RemoteReport& report : reports) {
    if (report.kind == operation.kind && report.server == operation.server &&
        report.effect_key == operation.effect_key) {
      return report;
    }
  }
  return std::nullopt;
}

std::optional<RemoteReport> find_report(StepContext& ctx, const RemoteOperation& operation) {
  return find_report(all_reports(ctx), operation);
}

}  // namespace pv2
