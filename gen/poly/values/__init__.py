"""Which value a read takes. Of the plain tree: `flow`. Of the scheduled one: `match` (a block
beside the plain one it stands for) and `roles`, then `reads` (checked against the certificate),
with `last_writes`, `reduction` (terms, each once), `terms`, `tuples`, `padding` and
`substitution`.
"""
