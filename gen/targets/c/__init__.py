"""C as text: `names` and types, `expr` (scalar expressions), `views` (how buffers are
addressed), `lines` and `layout`, and `marks` (which part of the tree a line comes from).
"""
