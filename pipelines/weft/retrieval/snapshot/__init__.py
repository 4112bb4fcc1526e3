"""What a search reads: indexes, facts and beliefs, held together for one request."""
