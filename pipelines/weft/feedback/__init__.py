"""Feedback: events in, evidence out, exactly once. Read `pipeline` first."""
