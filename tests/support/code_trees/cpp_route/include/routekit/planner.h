#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "routekit/cost_model.h"

namespace routekit {

struct Route {
  std::vector<std::uint32_t> nodes;
  double seconds = 0.0;
};

class Planner {
 public:
  Planner(const Graph& graph, const CostModel& costs) : graph_(graph), costs_(costs) {}
  std::optional<Route> shortest(std::uint32_t from, std::uint32_t to, double departure) const;

 private:
  double remaining(std::uint32_t from, std::uint32_t to) const;
  Route unwind(const std::vector<std::uint32_t>& before, std::uint32_t to, double seconds) const;
  const Graph& graph_;
  const CostModel& costs_;
};

}  // namespace routekit
