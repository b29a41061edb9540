"""Rules: what chooses a recipe where a spec has none.

A rule is a file. Its docstring says what it looks for and why it does what it does; its functions,
`processor` and `gpu`, take a draft and a block, and give drafts with steps for that block and what
it draws in, one for each variant, the last for all sizes; or they raise Declined. What comes of
them is an ordinary recipe. No rule knows a kernel's name, and none is trusted.
"""
