"""The commands of `tilesmith`: a file each, named as the command, with its arguments and what
it does. `arguments` has what several take; `build` is what meson.build files call.
"""
