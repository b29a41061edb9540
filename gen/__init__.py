"""The generator: kernels written as algebra in YAML become proved C sources."""

__version__ = "0.1.0"
