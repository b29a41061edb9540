"""The primitives: one file each, named as recipes name them."""
