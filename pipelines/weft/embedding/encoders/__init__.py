"""Encoders by arithmetic and library, behind one port."""
