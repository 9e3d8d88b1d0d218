"""`device add`, `device update` and `device rotate-key`; `log`, which may go on following what is logged."""

from __future__ import annotations

import threading
from argparse import SUPPRESS, Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from beetle.cli import data
from beetle.cli.new_file import new_file, write_all
from beetle.cli.parser import Parser, typed_option
from beetle.cli.session import Session, open_session, start_command
from beetle.contracts.codec import pack_json, replace
from beetle.contracts.control import TOPIC_CAPABILITIES
from beetle.contracts.devices import DeviceKeyReport, DeviceReport
from beetle.contracts.errors import Conflict, DaemonUnavailable, InvalidRequest
from beetle.contracts.event_log import EventLogReadReport, EventRow
from beetle.contracts.memory import MemoryCapabilityCatalog
from beetle.contracts.operations import BY_NAME, Operation

if TYPE_CHECKING:
    from beetle.client import Client

LOG = BY_NAME["event_log.read"]
LAST_ROWS = 20
POLL_SECONDS = 2.0
"""How late a row may be shown whose topic nobody can subscribe to, or this caller may not."""


def fill_operation(row: Operation, parser: Parser) -> None:
    """What the operation takes, and for those that make a key where to put it."""
    data.fill_operation(row, parser)
    if row.report is DeviceKeyReport:
        parser.add_argument(
            "--write-auth", metavar="FILE", default=SUPPRESS,
            help="write the credentials to this new file, for --auth-file, and show no key",
        )  # fmt: skip


def run_operation(row: Operation, typed: Namespace) -> int:
    """`device add`, `device update` or `device rotate-key`; several capabilities may stand behind one flag."""
    arguments = data.gather(row, typed)
    _split(arguments, "capabilities")
    place = typed_option(typed, "write_auth")
    if place is None:
        data.show(data.ask(typed, row, arguments), typed)
        return 0
    with new_file("--write-auth", place) as descriptor:
        report = cast(DeviceKeyReport, data.ask(typed, row, arguments))
        if report.appKeyOnce is None:
            gone = report.device.state == "revoked"
            raise Conflict(
                reason="this request was answered before, and its key stood in that answer alone"
                + (", and the device was revoked or removed since" if gone else ""),
                hint="add a device: `beetle device add`" if gone else "make another key: `beetle device rotate-key`",
            )
        credentials = {"device_id": report.device.device_id, "app_key": report.appKeyOnce}
        write_all(descriptor, pack_json(credentials) + b"\n")
    if typed_option(typed, "json"):
        data.show(replace(report, appKeyOnce=None), typed)
    else:
        data.show(DeviceReport(device=report.device), typed)
        print(f"Credentials:  {place}")
    return 0


def _split(arguments: dict[str, Any], field: str) -> None:
    """Several names behind one flag, with commas between them."""
    if field in arguments:
        named = (part.strip() for each in arguments[field] for part in each.split(","))
        arguments[field] = [name for name in named if name]


def fill_log(parser: Parser) -> None:
    """What `log` takes."""
    data.fill_operation(LOG, parser)
    parser.add_argument("--follow", action="store_true", default=SUPPRESS, help="continue with new rows until Ctrl-C")


def run_log(typed: Namespace) -> int:
    """The last rows, the newest at the end; with --follow those that come, too."""
    request = data.gather(LOG, typed)
    _split(request, "topics")
    ahead = "after" in request or "newest_first" in request
    if not typed_option(typed, "follow"):
        request.setdefault("newest_first", not ahead)
        report = cast(EventLogReadReport, data.ask(typed, LOG, request))
        if not ahead and not typed_option(typed, "json"):
            report = replace(report, rows=report.rows[::-1])
        data.show(report, typed)
        return 0
    for name in ("cursor", "newest_first", "before", "until"):
        if name in request:
            option = "--" + name.replace("_", "-")
            raise InvalidRequest(reason=f"log: {option} and --follow do not go together", hint=f"leave {option} out")
    with open_session(typed, LOG.name) as session:
        if session.client is None:
            reason = "log --follow follows a daemon, and none answers"
            hint = f"start one with `{start_command(typed)}`, or leave --follow out"
            raise DaemonUnavailable(reason=reason, hint=hint)
        _follow(session, session.client, request, bool(typed_option(typed, "json")))
    return 0


def _follow(session: Session, client: Client, request: dict[str, Any], as_json: bool) -> None:
    woken = threading.Event()
    with _wakes(session, client, woken):
        after = _first_rows(session, request, as_json)
        while True:
            woken.wait(POLL_SECONDS)
            woken.clear()
            after = _rows_behind(session, {**request, "after": after}, as_json)


@contextmanager
def _wakes(session: Session, client: Client, woken: threading.Event) -> Iterator[None]:
    """Set `woken` at every event that this caller may follow."""
    catalog = cast(MemoryCapabilityCatalog, session.call("memory.capabilities", {}))
    topics = [topic for topic, needed in TOPIC_CAPABILITIES.items() if catalog.capabilities[needed].visible]
    if not topics:
        yield
        return
    with client.subscribe(topics) as events:

        def wait() -> None:
            with suppress(ConnectionError):  # the next request will say so
                for _ in events:
                    woken.set()

        threading.Thread(target=wait, name="beetle-follow", daemon=True).start()
        yield


def _first_rows(session: Session, request: dict[str, Any], as_json: bool) -> int:
    """Show what there is behind `after`, or the last rows; the number behind which to go on."""
    if "after" in request:
        return _rows_behind(session, request, as_json)
    asked = {"limit": LAST_ROWS, **request, "newest_first": True}
    report = cast(EventLogReadReport, session.call(LOG.name, asked))
    _show(report.rows[::-1], as_json)
    return report.head


def _rows_behind(session: Session, request: dict[str, Any], as_json: bool) -> int:
    """Show every row behind `after`, page by page; the number behind which to go on."""
    asked = {name: value for name, value in request.items() if name != "limit"}
    while True:
        report = cast(EventLogReadReport, session.call(LOG.name, asked))
        _show(report.rows, as_json)
        if not report.has_more:
            return report.head
        asked = {**asked, "cursor": report.next_cursor}


def _show(rows: tuple[EventRow, ...], as_json: bool) -> None:
    from beetle.cli.render import as_json as json_of
    from beetle.cli.render_console import event_line
    from beetle.cli.text import screen_width

    for row in rows:
        print(json_of(row) if as_json else event_line(row, screen_width()), flush=True)


OWN = {"log": (fill_log, run_log)}
