"""What is live: generations and learned versions, published whole and made current by one atomic step (ARC-2)."""
