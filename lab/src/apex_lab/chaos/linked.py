"""The stack with a link of its own between every process of a service and every server that it talks to.

So one planner can be cut off from NATS while the other goes on; and the provider sees by the port which process asks.
"""

from typing import Final
from urllib.parse import urlsplit

from msgspec import structs

from apex_lab.chaos.links import HOST, Link
from apex_lab.stack import Stack, services
from apex_lab.stack.services import Wiring

SERVICES: Final = tuple(services.MODULES)


class Linked(Stack):
    """`links[process][server]`, servers being nats, phone, postgres and model, as far as the process uses them."""

    links: dict[str, dict[str, Link]]

    async def _start_service(self, service: str, name: str) -> None:
        links = await self._links_of(service)
        self.links[name] = links
        extra = self._environment.get(service, {})
        environment = services.service_environment(service, name, _through(self.wiring, links), extra)
        await self._keep(name, services.command(services.MODULES[service][0]), environment)

    async def _links_of(self, service: str) -> dict[str, Link]:
        wiring = self.wiring
        ports = {"nats": lambda: self.nats.port}
        match service:
            case "decision-log":
                ports["postgres"] = lambda: self.postgres.port
            case "planner-decision":
                model = _port(wiring.model.base_url or "")
                ports["model"] = lambda: model
            case "executor":
                phone = _port(wiring.devices[0].url)
                ports["phone"] = lambda: phone
            case _:
                pass
        links = {server: await self._exit.enter_async_context(Link(port)) for server, port in ports.items()}
        if service == "executor":  # all reach the phones by one address, as they do where there is one Appium server
            links["phone"] = self._to_phones = self._to_phones or links["phone"]
        return links

    _to_phones: Link | None = None

    async def _start(self) -> None:
        self.links, self._to_phones = {}, None
        await super()._start()


def _through(wiring: Wiring, links: dict[str, Link]) -> Wiring:
    """The wiring as one process sees it. Perception finds the phones by the device record, which the executor writes:
    both so reach them through links of executors."""
    changed = structs.replace(wiring, nats_url=f"nats://{HOST}:{links['nats'].port}")
    if "postgres" in links:
        place = urlsplit(wiring.database_url)
        moved = place._replace(netloc=place.netloc.replace(f":{place.port}", f":{links['postgres'].port}"))
        changed = structs.replace(changed, database_url=moved.geturl())
    if "phone" in links:
        url = f"http://{HOST}:{links['phone'].port}"
        changed = structs.replace(changed, devices=tuple(structs.replace(device, url=url) for device in wiring.devices))
    if "model" in links:
        url = f"http://{HOST}:{links['model'].port}"
        changed = structs.replace(changed, model=structs.replace(wiring.model, base_url=url))
    return changed


def _port(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None, url
    return port
