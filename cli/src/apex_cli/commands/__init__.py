"""The commands, one module for each kind: tasks of a running system, saved screens without one, checks of the code."""
