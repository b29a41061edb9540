"""The rules that every tree obeys, checked between all stages: `verify` calls the others, which
are those of `expressions`, of `launches` (blocks and threads of a GPU) and of `transfers`
(between ranks).
"""
