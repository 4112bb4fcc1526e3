#pragma once

#include "routekit/graph.h"

namespace routekit {

/// Says what it costs to drive along an edge.
class CostModel {
 public:
  virtual ~CostModel() = default;
  virtual double seconds(const Edge& edge, double departure) const = 0;
};

}  // namespace routekit
