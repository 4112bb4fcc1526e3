#pragma once

#include <array>

#include "routekit/cost_model.h"

namespace routekit {

// Slows roads down by the hour of the day.
class TrafficCosts : public CostModel {
 public:
  explicit TrafficCosts(std::array<double, 24> share) : share_(share) {}
  double seconds(const Edge& edge, double departure) const override;
  void report_jam(double hour, double share);

 private:
  std::array<double, 24> share_;
};

}  // namespace routekit
