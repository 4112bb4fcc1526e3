#pragma once

#include <cstdint>
#include <vector>

namespace routekit {

struct Edge {
  std::uint32_t to;
  double metres;
  double speed_limit;
  bool closed = false;
};

struct Point {
  double lat;
  double lon;
};

struct Graph {
  std::vector<Point> points;
  std::vector<std::vector<Edge>> out;
};

}  // namespace routekit
