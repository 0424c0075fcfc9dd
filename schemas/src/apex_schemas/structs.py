"""The base of every message: immutable, keyword-only, fields at their default left off the wire."""

import msgspec


class Wire(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value that travels. Unknown fields are ignored and new fields need defaults: old messages stay readable."""
