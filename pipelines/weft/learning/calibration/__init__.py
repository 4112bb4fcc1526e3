"""From scores to probabilities, and whether they mean what they say."""
