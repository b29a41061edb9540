"""What is wrong with a tree whatever it computes: `safety` (bounds, parallel loops), `races`
(threads of a launch), `messages` (between ranks); and `in_place`: which arrays a call may give
twice.
"""
