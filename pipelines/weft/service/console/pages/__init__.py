"""The pages, each over one part of `weft.app`."""
