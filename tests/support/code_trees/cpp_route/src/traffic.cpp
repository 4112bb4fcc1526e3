#include "traffic.h"

#include <algorithm>
#include <cmath>

namespace routekit {

// Time along an edge at the speed that is usual at the hour when one gets there.
double TrafficCosts::seconds(const Edge& edge, double departure) const {
  const auto hour = static_cast<std::size_t>(std::fmod(departure / 3600.0, 24.0));
  const double speed = edge.speed_limit * share_[hour];
  return edge.metres / std::max(1.0, speed);
}

// Mixes what drivers tell into the usual speed, one fifth at a time, so that one report changes little.
void TrafficCosts::report_jam(double hour, double share) {
  auto& usual = share_[static_cast<std::size_t>(hour) % 24];
  usual = 0.8 * usual + 0.2 * std::clamp(share, 0.05, 1.0);
}

}  // namespace routekit
