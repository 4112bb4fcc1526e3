"""From units of any document to chunks: hierarchy, sizes, splitting, context."""
