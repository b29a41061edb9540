"""The body of a spec, resolved: `program` is the result, `resolve` makes it, with the help of
`scope` (what is known at a place), `sizes` (what is known of sizes), `indices`, `guards` (what
depends on data) and `hoist` (reductions inside expressions).
"""
