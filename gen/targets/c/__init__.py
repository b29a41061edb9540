"""C as text, and what all C-like targets share of a target.

Read `names` and types, `expr` (scalar expressions), `views` (how buffers are addressed), `updates`
(a statement of one instance), `statements`, `temporaries`, `call` (what a function takes) and
`file`. `finishing` has the passes that they share, of which `inline` (with `clamps`) is one;
`library` compiles and loads. `lines`, `layout` and `marks` are about the text itself.
"""
