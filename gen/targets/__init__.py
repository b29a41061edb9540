"""The targets: all that differs between the machines that code is made for, a folder each.

Read `target` first: what a target supplies, and the registry that commands look one up in; then
`cpu/target`, which supplies it for CPUs, and `registry`, which lists the targets that there are.
`c` is text that all C-like targets share. Nothing outside of this folder names a level, a number of
lanes or the bytes of a line.
"""
