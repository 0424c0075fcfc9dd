"""The wire of Apex Agent: every message, action and subject, as values.

Depends on msgspec alone and does no I/O. Services share this package and nothing else of each other's.
"""
