"""Chunks: what stores, finds, links, archives and analyses them."""
