"""The error tree of the scripted model server.

ModelLabError
├── RequestRefused      what the real provider would refuse: rendered by each API in its provider's body
├── FaultInvalid        a queued fault that cannot be understood
└── PromptUnreadable    a user message that holds no goal; the server answers it with text, no tool
"""


class ModelLabError(Exception):
    """Everything this package raises on purpose."""


class RequestRefused(ModelLabError):
    """A request that the provider refuses.

    `status` is the HTTP status, `kind` the provider's error type, `param` and `code` are OpenAI's extra fields.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind
        self.param = param
        self.code = code


class FaultInvalid(ModelLabError):
    """The body of POST /lab/model/next is no fault; `detail` says where."""

    def __init__(self, detail: str) -> None:
        super().__init__(
            f"POST /lab/model/next: {detail}. Send one object or a list; fields: see apex_lab.model.faults"
        )
        self.detail = detail


class PromptUnreadable(ModelLabError):
    """The last user message has no line that starts with `Goal:`."""

    def __init__(self, *, length: int) -> None:
        super().__init__(f"no line 'Goal: ...' in the last user message of {length} characters: nothing to play")
        self.length = length
