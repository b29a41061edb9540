"""`python -m tilesmith` prints how this machine runs the kernels."""

from . import show_config

show_config()
