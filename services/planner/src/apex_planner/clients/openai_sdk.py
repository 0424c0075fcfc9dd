"""The openai SDK, made once for both of its APIs, its errors as ours. Imported with this module, and with no other."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import openai

from apex_planner.clients.reading import Json
from apex_planner.errors import ProviderRefused, ProviderUnreachable
from apex_planner.settings import ProviderSettings


class RawResponse(Protocol):
    @property
    def text(self) -> str: ...


def make_sdk(settings: ProviderSettings) -> openai.AsyncOpenAI:
    """Everything that the SDK would otherwise take from the environment is given here."""
    return openai.AsyncOpenAI(
        api_key=settings.key,
        base_url=settings.planner.url,
        timeout=settings.planner.timeout_seconds,
        max_retries=settings.planner.max_retries,
    )


async def send(create: Callable[..., Awaitable[Any]], body: Json) -> str:
    """Call a `with_raw_response.create`. Raises ProviderRefused or ProviderUnreachable."""
    try:
        response: RawResponse = await create(**{n: value for n, value in body.items() if not n.startswith("_")})
    except openai.APIStatusError as error:
        raise ProviderRefused(error.status_code, error.response.text, request_id=error.request_id) from None
    except openai.APITimeoutError:
        raise ProviderUnreachable("time-out", timed_out=True) from None
    except openai.APIConnectionError as error:
        raise ProviderUnreachable(str(error.__cause__ or error) or type(error).__name__, timed_out=False) from None
    return response.text
