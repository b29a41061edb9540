"""Kernels shown: `text` (a stage, or what steps changed), `story` (a variant's way, tree by
tree), `differences` (of two texts), `page` (all of it in HTML). And their costs: `count` (of a
tree at any size), `work` (at given sizes), `mix` (of machine code), `costs` (in HTML).
"""
