"""A Compose project of the tests' own on the lab host's files: started, asked, and ended without a trace."""

import json
import os
import secrets
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from apex_lab.embedded.process import free_port

ROOT = Path(__file__).resolve().parents[2]
FILES = ("docker-compose.yml", "deploy/compose.ci.yml")


@dataclass(frozen=True, kw_only=True)
class Lab:
    """`command` runs Compose and returns what it prints; it fails with what it printed when Compose fails.
    `settings` stand for a .env."""

    project: str = field(default_factory=lambda: f"apex-test-{secrets.token_hex(3)}")
    nats_port: int = field(default_factory=free_port)
    phones_port: int = field(default_factory=free_port)
    settings: dict[str, str] = field(default_factory=dict)

    def command(self, *arguments: str, timeout_s: float = 120) -> str:
        files = [part for name in FILES for part in ("-f", str(ROOT / name))]
        command = ["docker", "compose", "--project-name", self.project, *files, *arguments]
        done = subprocess.run(
            command,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stdout[-2_000:]}{done.stderr[-4_000:]}"
        return done.stdout

    def up(self) -> None:
        self.command("up", "--detach", "--wait", "--wait-timeout", "180", timeout_s=1_000)

    def down(self) -> None:
        self.command("--profile", "cli", "down", "--volumes", "--remove-orphans", "--timeout", "5")

    def inside(self, service: str, *arguments: str) -> str:
        return self.command("exec", "-T", service, *arguments)

    def python(self, service: str, program: str) -> str:
        return self.inside(service, "python", "-I", "-c", program)

    def sql(self, query: str) -> list[list[str]]:
        """The rows of a query, as text."""
        psql = ("psql", "-U", "apex", "-d", "apex", "-At", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-c", query)
        return [line.split("\t") for line in self.inside("postgres", *psql).splitlines()]

    def addresses(self, service: str) -> list[str]:
        """Every address that a service's container has, on whichever network."""
        container = self.command("ps", "--quiet", service).strip()
        networks = json.loads(_docker("inspect", "--format", "{{json .NetworkSettings.Networks}}", container))
        return [network["IPAddress"] for network in networks.values()]

    def leftovers(self) -> list[str]:
        """Containers, volumes and networks that carry the project's label."""
        mine = ("--filter", f"label=com.docker.compose.project={self.project}", "--format", "{{json .}}")
        kinds = [("ps", "--all"), ("volume", "ls"), ("network", "ls")]
        return [line for kind in kinds for line in _docker(*kind, *mine).splitlines()]

    def _environment(self) -> dict[str, str]:
        """As with a .env of the settings, the ports, and no trace viewer."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "DOCKER_HOST") if name in os.environ}
        ports = {"APEX_NATS_PORT": str(self.nats_port), "APEX_PHONES_PORT": str(self.phones_port)}
        return {**kept, **ports, "APEX_OTLP_ENDPOINT": "", **self.settings}


def _docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True, timeout=60).stdout
