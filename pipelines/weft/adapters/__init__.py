"""Retrievers for frameworks (OPS-5b), one module each; what a framework needs is an extra of the same name."""
