"""Time against size, from 100 bytes up: where does a kernel's cost per unit of work jump?

`series` has the kernels and their sizes, `jumps` finds the jumps in times, `measuring` measures by
the machinery of the benchmark and measures each jump again, `page` and `picture` say what was
found, and `command` is `python -m bench scaling`.
"""
