"""Oracles and accuracies: `calls` says what a formula may call, `formula` runs one, `oracle`
asks the spec's.
"""
