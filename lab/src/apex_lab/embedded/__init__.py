"""Real servers from wheels: NATS and PostgreSQL as child processes, for the demo and for tests without Docker.

Each is an async context manager over a folder that keeps its data. Both listen on the loopback interface only, end
with the block, and end as well when the process that started them is killed.
"""
