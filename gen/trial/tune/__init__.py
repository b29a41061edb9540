"""What `tilesmith tune` does: parameters of a recipe, or rules, searched by measured time.

Read `space` (what is searched), `subjects` (the recipe that a choice of values makes), `contest`
(how two kernels are compared), `study` (which values are tried next, and what is remembered),
`tune` (all of it together), then `edit` (the winner written into the spec).
"""
