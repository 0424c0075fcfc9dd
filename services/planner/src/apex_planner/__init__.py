"""Scene and World to one decision: the planner service, and the planner-decision endpoint that holds provider keys."""
