"""The dialects by route. A further wire format is one module and one line here."""

from proxy.dialects import openai_chat
from proxy.dialects.ask import Dialect

DIALECTS: dict[str, Dialect] = {openai_chat.ROUTE: openai_chat}
