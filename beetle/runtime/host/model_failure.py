"""Why a model gave no answer; apart from its client, which is loaded only where a model is configured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from beetle.contracts.errors import ServicesUnavailable
from beetle.runtime.host.config import Model

if TYPE_CHECKING:
    from beetle.runtime.host.model import ModelClient

REASONS: Mapping[str, tuple[str, str]] = {
    "not_configured": ("no model is configured", "name one in [model] of beetle.toml, and start again"),
    "unreachable": ("the model cannot be reached", "start its server, or correct [model] url"),
    "untrusted": ("the model's certificate is not trusted", "give its server a certificate that this machine trusts"),
    "refused": ("the model refused this machine's key", "put a valid key into the [model] api_key_file"),
    "busy": ("the model is busy", "try again later"),
    "redirected": ("the model's address leads elsewhere", "put the address that it leads to into [model] url"),
    "no_key": ("the model's key file cannot be used", "make api_key_file a file of one line, mode 600, of this user"),
    "insecure": ("a key is never sent to another machine over http", "give [model] an https url, or no api_key_file"),
    "slow": ("the model did not answer in time", "give it a longer [model] timeout_s, or a smaller model"),
    "broken": ("the model's answer broke off", "look at its server's log"),
    "too_large": ("the model's answer is too large", "look at its server's log"),
    "failed": ("the model's server failed", "look at its server's log"),
    "wrong_answer": ("the model did not answer as it was asked to", "try again, or name a more capable model"),
    "closing": ("the runtime is being closed", "nothing was lost; ask again later"),
}
"""What is said of each code: the reason and the hint."""
OURS = frozenset({"slow", "broken", "too_large", "failed", "wrong_answer"})
"""Failures that may be the question's own fault: an attempt at a job counts. After the others it is tried again."""


class ModelFailed(ServicesUnavailable):
    """The model gave no answer to work with. Details: `code`, a key of `REASONS`."""

    def __init__(self, code: str) -> None:
        reason, hint = REASONS[code]
        super().__init__(reason=reason, code=code, hint=hint)
        self.code = code

    @property
    def counts(self) -> bool:
        """Whether the question may be to blame."""
        return self.code in OURS


def open_model(model: Model | None) -> ModelClient | None:
    """The client of the configured model, if there is one."""
    if model is None:
        return None
    from beetle.runtime.host.model import ModelClient

    return ModelClient(model)
