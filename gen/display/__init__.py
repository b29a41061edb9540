"""Kernels shown: `text` (a stage, or what steps changed), `story` (a variant's way, tree by
tree), `differences` (of two texts), `page` (all of it in HTML), `count` (a static count of
costs).
"""
