"""One module a step, applied in order by `python -m apex_decision_log.migrate`."""
