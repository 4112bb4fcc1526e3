"""Beliefs by family of distribution: prior and evidence in, posterior out."""
