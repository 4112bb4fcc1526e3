"""The service: one HTTP application over a store, for applications, agents and people with a browser (OPS-5)."""
