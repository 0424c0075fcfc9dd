"""What can go wrong between a phone's page source and a Scene.

PerceptionError
├── NothingToSee            neither a tree nor a picture: no Scene can be made
├── NoTree                  the bytes hold no tree that can be read
│   ├── SourceEmpty         nothing at all came
│   ├── SourceRefused       a document type with entities: refused, nothing fetched, nothing expanded
│   └── SourceTooLarge      more bytes than a page source may have
├── PictureUnreadable       the screenshot is no PNG or JPEG
└── PhoneError              the phone or its Appium server did not answer as it should
    ├── SessionDead         the session is gone: somebody must make a new one
    ├── SourceUnavailable   the phone refused its page source; a picture may still be had
    └── PhoneUnavailable    no answer, or an error of the server: may pass
"""


class PerceptionError(Exception):
    """Base of all errors of perception."""


class NoTree(PerceptionError):
    def __init__(self, found: str) -> None:
        super().__init__(f"the page source holds no tree: {found}; wake the screen and read it again")
        self.found = found


class SourceEmpty(NoTree):
    def __init__(self) -> None:
        super().__init__("it is empty")


class SourceRefused(NoTree):
    def __init__(self) -> None:
        super().__init__("it declares a document type with entities, which is refused; nothing was fetched or expanded")


class SourceTooLarge(NoTree):
    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"it has {size:,} bytes, more than the {limit:,} that are read")
        self.size, self.limit = size, limit


class PictureUnreadable(PerceptionError):
    def __init__(self, size: int, reason: str) -> None:
        super().__init__(f"the screenshot of {size:,} bytes cannot be read as PNG or JPEG: {reason}; take it again")
        self.size, self.reason = size, reason


class NothingToSee(PerceptionError):
    def __init__(self, tree: Exception | str, picture: Exception | str) -> None:
        super().__init__(f"no Scene can be made; {tree}; picture: {picture}")
        self.tree, self.picture = str(tree), str(picture)


class PhoneError(PerceptionError):
    """Base of what a phone or its Appium server answers instead of what was asked."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}")
        self.what, self.reason = what, reason


class SessionDead(PhoneError):
    pass


class SourceUnavailable(PhoneError):
    pass


class PhoneUnavailable(PhoneError):
    pass
