"""Typed values: `types` says which type operands share, `values` what they are made of,
`functions` what the language computes of them.
"""
