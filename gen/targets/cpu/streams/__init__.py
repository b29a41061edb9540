"""Memory past the caches: `streams` (loops that are there twice), `rows` and `row_loops` (which
vectors are whole lines), `prefetch`.
"""
