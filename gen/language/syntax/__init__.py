"""The small language of `compute:` and of conditions: `nodes` are its syntax trees, `grammar`
reads them, `hints` says what may have been meant.
"""
