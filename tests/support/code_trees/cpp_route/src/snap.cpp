#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "routekit/graph.h"

namespace routekit {

// The node that is nearest to a position; none where all are further away than the limit.
std::optional<std::uint32_t> snap_to_road(const Graph& graph, Point position, double limit_metres) {
  double nearest = std::numeric_limits<double>::infinity();
  std::optional<std::uint32_t> found;
  for (std::uint32_t node = 0; node < graph.points.size(); ++node) {
    const double metres =
        std::hypot(graph.points[node].lat - position.lat, graph.points[node].lon - position.lon) * 111000.0;
    if (metres < nearest && metres <= limit_metres) {
      nearest = metres;
      found = node;
    }
  }
  return found;
}

// Drops points of a track that lie closer together than a step, so that standing still draws no scribble.
std::size_t thin_track(Point* track, std::size_t count, double step_metres) {
  std::size_t kept = 0;
  for (std::size_t at = 0; at < count; ++at) {
    const bool apart = kept == 0 || std::hypot(track[at].lat - track[kept - 1].lat,
                                               track[at].lon - track[kept - 1].lon) * 111000.0 >= step_metres;
    if (apart) track[kept++] = track[at];
  }
  return kept;
}

}  // namespace routekit
