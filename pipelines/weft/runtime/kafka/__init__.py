"""Kafka: reading and writing topics, and a broker for one machine."""
