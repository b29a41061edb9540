"""Index expressions: `linear` forms, `inequalities` and `bounds`, `facts` (what holds at a
place in a tree), `simplify` (what facts decide). Primitives and lowering ask them, the prover
never.
"""
