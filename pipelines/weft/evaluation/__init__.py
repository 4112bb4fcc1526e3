"""Measuring before believing: metrics, comparisons, simulated users."""
