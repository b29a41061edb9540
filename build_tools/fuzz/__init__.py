"""Random kernels under random steps: what is proved is compiled and compared.

`python -m build_tools.fuzz` draws them; docs/fuzzing.md says what it reports.
"""
