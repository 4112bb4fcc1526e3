"""Cutting documents in a child process that can be killed."""
