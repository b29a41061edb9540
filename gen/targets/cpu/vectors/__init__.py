"""Statements of vectorized loops, all lanes at once: `expr` (expressions), `forms` (what has a
vector form), `masks`, `casts`, `prelude` (what comes before a statement), `registers` and
`shifts` (temporaries in vectors), `exponentials` (four at a time).
"""
