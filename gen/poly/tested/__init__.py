"""What data hides from the proof: `hidden_sources` finds such reads, `comparison` runs the tree
beside the plain one.
"""
