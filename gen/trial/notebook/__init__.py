"""A spec's kernel as a Python function, compiled on the spot: `tilesmith.gen.compile(path)`.

The same pipeline as a wheel's, proofs included, kept by content in the user's cache folder. It is
for trying a spec out: there is no `axis`, `out` or `keepdims`, the last axes are the signature's,
and what the kernel does not take as it lies in memory is copied, which the functions of a built
package do a block at a time.

`kernel` is the function; `given` reads what a caller gives it, `sizes` finds and checks the sizes
of a call, and `plan` keeps all that calls of the same form have in common. `magic` is for IPython.
"""

from .kernel import NotebookKernel, compile

__all__ = ["NotebookKernel", "compile"]
