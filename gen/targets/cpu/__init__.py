"""CPUs: C11 with vectors and threads, for each ISA level.

Read `target` (all that a CPU supplies as a target), `levels`, `emit` (a kernel as a C file),
`statements`, `updates`, `context`. `passes` finish a lowered tree, `vectors` are expressions of all
lanes at once, `streams` stores past the caches. `combiners`, `temporaries`, `chooser` and `cost`
are a part of a statement's text each. `jit` compiles and loads, `assembly` shows the instructions;
`runtime` is the C that every extension compiles in.
"""
