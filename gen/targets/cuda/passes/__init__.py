"""The passes by which trees for a GPU are lowered and finished.

Read `launch_form`, then `scopes` and `guards`, then `lowering`, which has them in their order.
"""
