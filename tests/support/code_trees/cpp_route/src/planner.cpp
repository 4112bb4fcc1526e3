#include "routekit/planner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

namespace routekit {

namespace {
constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();
constexpr double kFastest = 36.0;
}  // namespace

// A* from one node to another: the node with the least cost so far plus what remains at best is settled next.
std::optional<Route> Planner::shortest(std::uint32_t from, std::uint32_t to, double departure) const {
  using Item = std::pair<double, std::uint32_t>;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> open;
  std::vector<double> best(graph_.out.size(), std::numeric_limits<double>::infinity());
  std::vector<std::uint32_t> before(graph_.out.size(), kNobody);
  best[from] = 0.0;
  open.emplace(remaining(from, to), from);
  while (!open.empty()) {
    const auto node = open.top().second;
    open.pop();
    if (node == to) return unwind(before, to, best[to]);
    for (const Edge& edge : graph_.out[node]) {
      if (edge.closed) continue;
      const double seconds = best[node] + costs_.seconds(edge, departure + best[node]);
      if (seconds < best[edge.to]) {
        best[edge.to] = seconds;
        before[edge.to] = node;
        open.emplace(seconds + remaining(edge.to, to), edge.to);
      }
    }
  }
  return std::nullopt;
}

// Seconds that are left at the very least: as the crow flies, at the highest speed there is.
double Planner::remaining(std::uint32_t from, std::uint32_t to) const {
  const Point& a = graph_.points[from];
  const Point& b = graph_.points[to];
  return std::hypot(a.lat - b.lat, a.lon - b.lon) * 111000.0 / kFastest;
}

// Walks back from the goal and turns the path around.
Route Planner::unwind(const std::vector<std::uint32_t>& before, std::uint32_t to, double seconds) const {
  Route route{{}, seconds};
  for (auto node = to; node != kNobody; node = before[node]) route.nodes.push_back(node);
  std::reverse(route.nodes.begin(), route.nodes.end());
  return route;
}

}  // namespace routekit
