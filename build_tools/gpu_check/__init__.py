"""Tries the kernels on a GPU: one command for a machine where nothing can be installed.

Here, in a checkout with the build's tools:

    python -m build_tools.gpu_check prepare --python cp312 build/gpu_check

It builds the wheel for that Python, computes what is to come out, and says what to run in the
folder that it made, once that is on a machine with a GPU, CuPy and NumPy:

    python3 -m build_tools.gpu_check run --seconds 480 --to results

`rows` is what is found; `cases` is what is carried along. `right`, `formulas`, `launches`, `times`
and `sanitizer` try the kernels; `jobs` runs these, each in a process of its own and for a while;
`report` writes the table and the JSON. `prepare` alone needs the generator.
"""
