"""What an API hands to the server: a finished body, before it is written whole or as a stream."""

from msgspec import Struct

from apex_lab.model.tools import Json


class Answered(Struct, frozen=True, kw_only=True):
    """A body of status 200. `stream` says that the client asked for server-sent events."""

    body: Json
    playbook: str
    stream: bool = False
