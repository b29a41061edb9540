"""The IR as text, at every stage: `printer` and `print_expr` write a script in Python's syntax,
`parser`, `parse_expr` and `parse_transfer` read it back; `script_names` keeps names apart from
keywords.
"""
