// SPDX-License-Identifier: Apache-2.0
//
// steps_chart: durable steps per second as a function of the procedures in flight, as an SVG on
// standard output: the engine, the same records written straight to LevelDB (the limit of an engine
// on LevelDB), and one raw sync per step and procedure (the limit of the disk). Both axes are
// logarithmic.
//
//     steps_chart FILE > chart.svg

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "harness/result_file.h"
#include "harness/work_folder.h"

namespace pv2::bench {
namespace {

constexpr double kWidth = 720;
constexpr double kHeight = 440;
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kTop = 50;
constexpr double kBottom = 50;

struct Point {
  double in_flight = 0;
  double steps_per_s = 0;
};
using Series = std::vector<Point>;

Series series_of(const std::vector<ResultLine>& lines, const std::string& bench) {
  Series series;
  for (const ResultLine& line : lines) {
    if (!line.has("bench", bench)) continue;
    const auto in_flight = line.number("in_flight");
    const auto steps = line.number("steps_per_s");
    if (in_flight && steps) series.push_back({*in_flight, *steps});
  }
  std::sort(series.begin(), series.end(),
            [](const Point& a, const Point& b) { return a.in_flight < b.in_flight; });
  return series;
}

/// Maps both axes to the picture. A value.
class Frame {
 public:
  Frame(double in_flight_max, double steps_min, double steps_max)
      : x_max_(std::log10(in_flight_max)),
        y_min_(std::floor(std::log10(steps_min))),
        y_max_(std::ceil(std::log10(steps_max))) {}

  [[nodiscard]] double x(double in_flight) const {
    return kLeft + std::log10(in_flight) / x_max_ * (kWidth - kLeft - kRight);
  }
  [[nodiscard]] double y(double steps) const {
    return kHeight - kBottom -
           (std::log10(steps) - y_min_) / (y_max_ - y_min_) * (kHeight - kTop - kBottom);
  }
  [[nodiscard]] double steps_min() const { return std::pow(10, y_min_); }
  [[nodiscard]] double steps_max() const { return std::pow(10, y_max_); }

 private:
  double x_max_;
  double y_min_;
  double y_max_;
};

std::string short_number(double value) {
  if (value >= 1e6) return fmt::format("{:g} M", value / 1e6);
  if (value >= 1e3) return fmt::format("{:g} k", value / 1e3);
  return fmt::format("{:g}", value);
}

void text(double x, double y, std::string_view anchor, std::string_view words) {
  fmt::print(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)"
             "\n",
             x, y, anchor, words);
}

void line(double x1, double y1, double x2, double y2, std::string_view style) {
  fmt::print(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" {}/>)"
             "\n",
             x1, y1, x2, y2, style);
}

void grid(const Frame& frame, const Series& ticks) {
  constexpr std::string_view kGrid = R"(stroke="#ddd")";
  for (double steps = frame.steps_min(); steps <= frame.steps_max() * 1.01; steps *= 10) {
    line(kLeft, frame.y(steps), kWidth - kRight, frame.y(steps), kGrid);
    text(kLeft - 8, frame.y(steps) + 4, "end", short_number(steps));
  }
  for (const Point& tick : ticks) {
    line(frame.x(tick.in_flight), kTop, frame.x(tick.in_flight), kHeight - kBottom, kGrid);
    text(frame.x(tick.in_flight), kHeight - kBottom + 18, "middle",
         fmt::format("{:g}", tick.in_flight));
  }
  text(kWidth / 2, kHeight - 12, "middle", "procedures in flight");
  text(kLeft, 20, "start", "durable steps per second");
}

void curve(const Frame& frame, const Series& series, std::string_view color,
           std::string_view style) {
  std::string points;
  for (const Point& point : series) {
    points += fmt::format("{:.1f},{:.1f} ", frame.x(point.in_flight), frame.y(point.steps_per_s));
  }
  fmt::print(R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="2" {}/>)"
             "\n",
             points, color, style);
  for (const Point& point : series) {
    fmt::print(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.5" fill="{}"/>)"
               "\n",
               frame.x(point.in_flight), frame.y(point.steps_per_s), color);
  }
}

void legend(int row, std::string_view color, std::string_view words) {
  const double y = kHeight - kBottom - 62 + row * 20;
  line(kWidth - 330, y - 4, kWidth - 302, y - 4,
       fmt::format(R"(stroke="{}" stroke-width="2")", color));
  text(kWidth - 295, y, "start", words);
}

int run(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "steps_chart FILE: an SVG of a file of JSON lines\n");
    return 2;
  }
  const std::vector<ResultLine> lines = read_results(argv[1]);
  const Series engine = series_of(lines, "durable_steps");
  const Series limit = series_of(lines, "leveldb_alone");
  double raw = 0;
  for (const ResultLine& result : lines) {
    if (result.has("bench", std::string("raw_sync"))) {
      raw = result.number("raw_syncs_per_s").value_or(0);
    }
  }
  if (engine.size() < 2 || raw == 0) die("a chart needs two points of durable_steps_bench");

  double most = engine.back().steps_per_s;
  for (const Point& point : limit) most = std::max(most, point.steps_per_s);
  const Frame frame(engine.back().in_flight, std::min(raw, engine.front().steps_per_s), most);
  // The disk's line leaves the picture at the top.
  const double leaves_at = std::min(engine.back().in_flight, frame.steps_max() / raw);

  fmt::print(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" )"
             R"(height="{1}" font-family="sans-serif" font-size="12">)"
             "\n"
             R"(<rect width="{0}" height="{1}" fill="white"/>)"
             "\n",
             kWidth, kHeight);
  grid(frame, engine);
  line(frame.x(1), frame.y(raw), frame.x(leaves_at), frame.y(raw * leaves_at),
       R"(stroke="#888" stroke-dasharray="5 4" stroke-width="1.5")");
  if (limit.size() >= 2) curve(frame, limit, "#d95f02", R"(stroke-dasharray="8 3")");
  curve(frame, engine, "#1b6fb5", "");
  legend(0, "#888", fmt::format("raw: {:.0f} syncs/s for each in flight", raw));
  legend(1, "#d95f02", "limit: the same records straight to LevelDB");
  legend(2, "#1b6fb5", "pv2 on LevelDB");
  fmt::print("</svg>\n");
  return 0;
}

}  // namespace
}  // namespace pv2::bench

int main(int argc, char** argv) { return pv2::bench::run(argc, argv); }
