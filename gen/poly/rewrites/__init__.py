"""Does a rewritten tree do what the proved one does? `equivalence` asks it of trees,
`expressions` of two expressions at a place, `index_order` whether terms come in the order of
their indices, `narrowed` whether loops that data bounds run what they did.
"""
