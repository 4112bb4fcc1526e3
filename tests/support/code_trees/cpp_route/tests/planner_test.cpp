#include <gtest/gtest.h>

#include "../src/traffic.h"
#include "routekit/planner.h"

namespace routekit {

TEST(PlannerTest, ClosedRoadsAreLeftOut) {
  Graph graph{{{0, 0}, {0, 0.1}}, {{{1, 1000, 10, true}}, {}}};
  std::array<double, 24> share;
  share.fill(1.0);
  TrafficCosts costs(share);
  EXPECT_FALSE(Planner(graph, costs).shortest(0, 1, 0).has_value());
}

TEST(TrafficTest, ARoadIsSlowerInTheRushHour) {
  std::array<double, 24> share;
  share.fill(1.0);
  share[8] = 0.5;
  TrafficCosts costs(share);
  const Edge edge{1, 1000, 10};
  EXPECT_GT(costs.seconds(edge, 8 * 3600), costs.seconds(edge, 3 * 3600));
}

}  // namespace routekit
