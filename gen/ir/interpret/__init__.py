"""What a tree computes, at any stage, checked as it runs: `interp` runs statements, `machine` is
memory and what reads and writes it, `source` makes functions of expressions, `evaluate` is the
arithmetic, `sizes` what shapes come to; `threads` and `ranks` take turns.
"""
