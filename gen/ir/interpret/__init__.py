"""What a tree computes, at any stage, checked as it runs: `interp` runs statements, `machine`
is memory and closures, `evaluate` the arithmetic, `sizes` what shapes come to; `threads` and
`ranks` take turns.
"""
