// SPDX-License-Identifier: Apache-2.0
//
// The limit of rows shrinks with each answer. That of bytes does not, because it decides also
// whether a row is divided; so the page has at most that and one answer more.

#include "client/table_scan.h"

#include <pv2/base/fields.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "wire/methods.h"
#include "wire/region_messages.h"

namespace pv2::cluster {

void TableScan::begin(RegionCallGround ground, TableName table, Scan scan, Duration timeout,
                      Done done) {
  const SteadyTime deadline = later(ground.tasks.now(), timeout);
  const std::shared_ptr<TableScan> call(
      new TableScan(ground, std::move(table), std::move(scan), deadline, std::move(done)));
  call->ask();
}

void TableScan::ask() {
  RegionCall::Request request{
      .table = table_,
      .row = rest_.start_row,
      .method = kRegionScan,
      .body = [scan = rest_](const RegionInfo& region) -> Result<std::string> {
        ScanRequest message{region.id, scan, 0};
        std::string body;
        encode_fields(message, FieldSelection::kAll, body);
        return body;
      },
      .options = {.read_only = true, .timeout = deadline_ - ground_.tasks.now()}};
  RegionCall::begin(
      ground_, std::move(request),
      [self = shared_from_this()](const CallOutcome& outcome, const RegionInfo& region) {
        self->take(outcome, region);
      });
}

void TableScan::take(const CallOutcome& outcome, const RegionInfo& region) {
  if (!outcome.ok()) return done_(outcome.status);
  ScanPage page;
  if (Status bad = decode_fields(page, FieldSelection::kAll, outcome.body); !bad.ok()) {
    return done_(bad);
  }
  const bool has_room = add(page);
  const bool region_ends = !page.next_row.has_value();
  const bool range_ends =
      region.end_key.empty() || (!rest_.end_row.empty() && region.end_key >= rest_.end_row);
  if (region_ends && range_ends) return finish();
  if (region_ends) page.next_row = region.end_key;
  rest_ = rest_of(std::move(rest_), page);
  if (has_room) return ask();
  page_.next_row = std::move(page.next_row);
  page_.next_family = std::move(page.next_family);
  page_.next_qualifier = std::move(page.next_qualifier);
  finish();
}

bool TableScan::add(ScanPage& page) {
  std::uint64_t rows = 0;
  for (std::size_t i = 0; i < page.cells.size(); ++i) {
    const Cell& cell = page.cells[i];
    if (i == 0 || cell.row != page.cells[i - 1].row) ++rows;
    bytes_ += cell.row.size() + cell.family.size() + cell.qualifier.size() + cell.value.size();
  }
  // A row counts when all of it is there.
  if (rows > 0 && page.divides_row() && page.cells.back().row == *page.next_row) --rows;
  std::ranges::move(page.cells, std::back_inserter(page_.cells));
  const bool has_room = rows < rest_.rows_max && bytes_ < rest_.bytes_max;
  rest_.rows_max -= std::min(rows, rest_.rows_max);
  return has_room;
}

}  // namespace pv2::cluster
