"""What can go wrong on the way to a decision.

PlannerError
├── ProviderError              the provider did not answer with a body that can be read
│   ├── ProviderRefused        an HTTP status that is no success
│   └── ProviderUnreachable    no answer: connection refused or reset, or a time-out
├── EndpointFailed             the planner-decision endpoint answered that it could not serve the request
├── PictureMissing             a picture that a Scene names is no longer stored
├── PictureUnreadable          a picture that cannot be decoded, and so cannot be cut down to size
└── PricesUnreadable           a table of prices that is not there or not in its form
EndpointAway (Transient)       nobody serves the endpoint, or it went silent: the turn is tried again
"""

from apex_bus.errors import Transient


class PlannerError(Exception):
    """Base of the planner's own errors."""


class ProviderError(PlannerError):
    """The provider's answer cannot be read as a decision."""


class ProviderRefused(ProviderError):
    """`body` is the error body as text, `request_id` the provider's name for the request."""

    def __init__(self, status: int, body: str, *, request_id: str | None = None) -> None:
        named = f", request id {request_id}" if request_id else ""
        super().__init__(f"the provider answered {status}{named}")
        self.status, self.body, self.request_id = status, body, request_id


class ProviderUnreachable(ProviderError):
    def __init__(self, reason: str, *, timed_out: bool) -> None:
        super().__init__(f"the provider did not answer: {reason}")
        self.reason, self.timed_out = reason, timed_out


class EndpointFailed(PlannerError):
    def __init__(self, description: str) -> None:
        super().__init__(f"the planner-decision endpoint failed: {description}; see its log")
        self.description = description


class PictureMissing(PlannerError):
    def __init__(self, subject: str) -> None:
        super().__init__(f"the picture {subject} is no longer stored; it is kept for an hour")
        self.subject = subject


class PictureUnreadable(PlannerError):
    def __init__(self, sha256: str, reason: str) -> None:
        super().__init__(f"the picture {sha256[:12]} cannot be decoded: {reason}")
        self.sha256, self.reason = sha256, reason


class PricesUnreadable(PlannerError):
    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"the prices in {file} cannot be read: {reason}; see prices.toml of apex_planner for the form")
        self.file, self.reason = file, reason


class EndpointAway(Transient):
    """Nothing is failed for it: the message comes again, and a call that was made is answered from its record."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the planner-decision endpoint is away ({reason}); start it, or set AI_PLANNER_TRANSPORT=direct",
            delay_s=2.0,
        )
