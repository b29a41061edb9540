"""The emulator: emitted CUDA C++ compiled by g++, and run on this machine.

Read `library` (compiling, and a library's functions), `counts` (what warps ask of memory) and
`emulated` (a kernel that can be called). `runtime` has the C++: `ts_emulator.h` is what device text
sees, `ts_emulator.cpp` runs it. No GPU and no CUDA is needed.
"""
