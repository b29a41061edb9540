"""GPUs, by CUDA: device text (`.cu`) and the C of the host side.

Read `architectures`, `passes` (how trees are lowered), `statements` and `launch` (device text),
`width` (whether 32 bits are enough for indices), `strides`, `host` (the tree outside of launches),
`emit` (the files) and `target`. `compilers` calls nvcc.
"""
