"""The scripted model server: a stand-in for Anthropic and OpenAI that plays playbooks and says so in every answer.

`async with serve(port=0) as url` runs it in this process, `python -m apex_lab.model --port 0` as one of its own.
Anthropic's SDK takes `url` as its base URL, OpenAI's takes `url + "/v1"`. Any key is accepted, but there must be one.
"""

from apex_lab.model.server import serve

__all__ = ["serve"]
