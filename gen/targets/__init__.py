"""What code is made for: a folder a target. `c` is text that all C-like targets share."""
