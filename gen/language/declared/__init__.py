"""What a spec declares beside its arrays: `scalars`, `reductions` and `externals` of its own, and
`type_variables`, with the names that all of them may have.
"""
