"""Tries the kernels on a GPU: one command for a machine where nothing can be installed.

Here, in a checkout with the build's tools:

    python -m build_tools.gpu_check prepare --python cp312 build/gpu_check

It builds the wheel for that Python (by pip, which fetches what the build needs), and that of its
machine code if there is nvcc; computes what is to come out; and says what to run in the folder that
it made, once that is on a machine with a GPU, CuPy and NumPy:

    python3 -m build_tools.gpu_check run --seconds 480 --to results

It takes no longer than it is given, writes `results/gpu_check.json` and `gpu_check.md` after each
stage, and ends with 0 where all that ran is right and something did. PyTorch and compute-sanitizer
are used where they are; what could not be run is listed.

`rows` is what is found; `cases` is what is carried along. `right`, `formulas`, `launches`, `times`
and `sanitizer` try the kernels; `jobs` runs these, each in a process of its own and for a while;
`report` writes the table and the JSON. `prepare` alone needs the generator.
"""
