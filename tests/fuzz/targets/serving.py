"""A daemon's server in this process for targets that are transports, made anew when an input has closed it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from beetle.contracts.codec import to_plain
from beetle.contracts.common import WireScope
from beetle.contracts.errors import BeetleError
from beetle.open import Embedded, Opened
from tests.cases import Case
from tests.fuzz.contract import Broken
from tests.fuzz.targets.prepared import prepared
from tests.fuzz.targets.target import GROWN, VERIFY_EVERY, counts_of, patiently
from tests.transports.serving import Served, open_folder

SCOPE = WireScope(channel="local", chat_id="talk")
UNSURE = ("deadline_exceeded", "overloaded")
"""Errors behind which something may be written all the same."""


class Server:
    """A server with something of every plane in its store."""

    def __init__(self) -> None:
        self._places = open_folder()
        self._folder = self._places.__enter__()
        self._number = 0
        self._inputs = 0
        self.served: Served
        self.got: Any = None
        self._open()

    @property
    def path(self) -> str:
        return self.served.path

    def _open(self) -> None:
        self._number += 1
        folder = self._folder / str(self._number)
        folder.mkdir()
        self.served = Served(folder)
        self.got = prepared(lambda op, args: to_plain(self.call(op, args)))
        self.counts = counts_of(self.served.store)

    def call(self, operation: str, arguments: Any) -> Any:
        """Ask as the operator, without the socket."""
        opened = Opened(self.served.store, self.served.dispatcher, None, (), None)  # type: ignore[arg-type]
        embedded = Embedded(opened, self._operator(), SCOPE)
        return patiently(lambda: embedded.call(operation, arguments, None, None, None).report)

    def request(self, case: Case) -> Any:
        """The request of a case; None where the profile hides what it needs."""
        try:
            return case.request(self.got)
        except BeetleError:
            return None

    def _operator(self) -> Any:
        from beetle.runtime.host.caller import Caller
        from beetle.runtime.host.principals import OPERATOR_CAPABILITIES

        views = ("host_ui", "model_context", "operator_audit", "export")
        return Caller(
            name="operator", kind="operator", capabilities=OPERATOR_CAPABILITIES, views=views, transport="in_process"
        )

    def look(self, errors: list[str | None]) -> None:
        """After an input whose requests were answered with these errors, None for a report."""
        self._inputs += 1
        if self.served.dispatcher.lifecycle.closed_with is not None:
            self.renew()
            return
        now = counts_of(self.served.store)
        if errors and None not in errors and not set(errors) & set(UNSURE) and now != self.counts:
            raise Broken(f"everything was refused ({errors}), and the store has changed: {self.counts} {now}")
        if self._inputs % VERIFY_EVERY == 0:
            self.verify()
            # An input may have disabled the socket, or taken the operator's rights.
            if sum(now.values()) > GROWN or not self._answers():
                self.renew()
                return
        self.counts = now

    def _answers(self) -> bool:
        peer = self.served.peer()
        try:
            return bool(peer.ask("memory.inspect")["ok"])
        except (OSError, EOFError):
            return False
        finally:
            peer.socket.close()

    def renew(self) -> None:
        """Go on with a fresh server."""
        self.served.close()
        shutil.rmtree(Path(self.path).parent)
        self._open()

    def verify(self) -> None:
        """Raises Broken for a store that is not whole."""
        report = self.call("store.verify", {})
        if not report.clean:
            raise Broken(f"the store is not whole: {report.findings}")

    def close(self) -> None:
        self.verify()
        self.served.close()
        self._places.__exit__(None, None, None)
