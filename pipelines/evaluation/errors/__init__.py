"""Why queries were answered as they were."""
