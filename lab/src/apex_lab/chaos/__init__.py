"""Chaos: tasks on simulated phones while everything is killed, paused, cut and delayed, and an independent account.

`trouble` does it, `load` asks for tasks, `evidence` reads what phones, task log, provider and Postgres each hold, and
`account` compares them, without any code of the services.
"""
