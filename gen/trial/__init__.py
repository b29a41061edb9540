"""Kernels tried before they ship. `check` (does it all end), `proofs` (each step), `run`
(beside its oracle), `timing`, `notebook` (as a Python function); `inputs`, `sizes`,
`comparison` and `plain` are what these run on and compare with.
"""
