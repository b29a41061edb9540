"""What a call spends its time on: `python -m bench call [--rounds N] [--write]`.

`stopped` compiles the binding once more, with a way to return after each of its steps; `parts`
times calls that stop there, and has the table.
"""
