"""The graph of a generation: entities, links and cross-references."""
