"""The embedded stack: the whole system as processes of this machine, for demo, `apex up`, tests, bench and chaos."""

from apex_lab.stack.services import Model, real_model
from apex_lab.stack.stack import Stack

__all__ = ["Model", "Stack", "real_model"]
