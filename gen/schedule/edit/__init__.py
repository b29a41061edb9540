"""What primitives are made of. Read `tree` (nodes found and replaced by name) and `allocation`
first. Of blocks that move: `moving`, `new_loops`, `placement`, `reader_loops`, `shared_loops`,
`windows`, `reuse`. Of loops: `interchange`, `nesting_rules`, `unrolling`, `points`. Of buffers:
`layouts`, `copies`. `inlining`, `running_reductions`, `launches` and `notes` are each
about what they say.
"""
