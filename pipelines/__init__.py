"""weft: retrieval that learns. Data flows from `domain` values up to `serving`; imports run one way."""
