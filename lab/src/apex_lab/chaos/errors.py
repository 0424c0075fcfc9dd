"""What can go wrong with a chaos run itself.

ChaosError
└── CannotRead   a witness could not be heard, so there is no account
"""


class ChaosError(Exception):
    """Base of all errors of chaos."""


class CannotRead(ChaosError):
    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what} could not be read for the account: {reason}")
        self.what = what
