"""The schema as the migrations make it: every row of `sqlite_schema`, known again by a digest.

A trigger, view, index, table or column that no migration made is somebody else's: it could keep what is erased, or give
what nobody granted. A store that has one is refused, and what differs is named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import apsw

from beetle.contracts.errors import SchemaMismatch
from beetle.named_tuple import NamedTuple

DIGESTS = (
    "6c714bf66b992e8469aad15f90c66d9442e3848598ac64592b197fba685e364a",
    "3ec71aaa942cf82670dacdb6ec1099cda3ea0430bfe6fea63bb9baaf81513f4c",
    "55db2c42b9eb04f8e31509107fb39ffec168cff905470ae9e9dedab7c8fa9489",
    "7a26f9c41547ef196c444cab9c9e75dd615f5805d9fbb92d81287fcb97d269fe",
    "00b447288ac1fd995bf9bd837a4e9ac6a78cca6f43eb26d1afcb2c4e60e257fe",
    "179720631d3da013be698cd8ca788315db48b3e1f3e00e5dff911a7b7d0037de",
    "585f13ec279ac242571f356e238a0ba5c9a48852fa421724a37ff490efddb390",
    "41f5c3062b0dbba05034f3e5076af4501c90c0797f3c6ee26c914a0caea7ba01",
    "704ccdad0bc32e61e1a06345ef949f3fe1e653818d0efd710f19be1360e09d27",
    "99343dbacf899e7f096b3e99e71ef1ec7638e55727dbd3bb1699e3e5c4fa3f93",
    "9fd783e003b331a4218ea30b720caecdb3a8a7ea6f0e1692e6e32d29530e424d",
    "10b9f4d0dacaed114a7f0bccb0e971958d209b1a48103a90afd48f994478b6cc",
    "d69daef0833eadfeb9e1d8c694c3e030dc75edd21c5dce6fdf9d0007affe82ea",
    "97608f9249275c141a489d081b15456092e232e47c9bdec3fa7301c71b51d847",
    "cd096b00e03ccd69ce6e10a38cd6c3986bc2b5ec625d766d660090ee166b34a0",
    "ed5301a10f3733c52237c78aa4854b4a3db65910c228c8c7a38cb8637e1f8fe7",
    "1a3b0e34bc81955b780a874cdd3932f92cdcf9ccf0791a07ca4acf0b4f88b0e7",
    "37e11620d394ebfd817ef4b7f344f41c8fb39b3fae7d7247e08f498120937397",
    "4a472c56704b2e5c1c9c7707203c70e6d23fa8bffeaf1a75a5b8526605af47b7",
    "0edbac6eeb479b538ac05ef7687469213b1f1fffca3e8a025d16e2fa22ac1009",
    "8d91baea5cb16ac71f6b33c2a9703546ea52b117a4d8e790cf543fa127d2d6ca",
    "27edb49024a60fae8b1bd32dba48917894d45fcf15b6b695aa1ceee75a440d77",
    "424f70d75d59a678863e56b178656bdc661c6089597f7ef35201aba4fe6028d9",
    "424f70d75d59a678863e56b178656bdc661c6089597f7ef35201aba4fe6028d9",
)
"""The digest of the schema after each migration, the first one's first, as `python -m tests.store.schema_digests` says
them: kept here, they spare each opening the making of a second schema."""
ROWS_SQL = """
SELECT coalesce(CAST(type AS BLOB), x''), coalesce(CAST(name AS BLOB), x''), coalesce(CAST(tbl_name AS BLOB), x''),
  CAST(sql AS BLOB)
FROM sqlite_schema
"""
NAMED_AT_MOST = 8
NAME_CHARS = 60
ADVICE = (
    "nothing was changed; restore a snapshot into a new store, or look at what is named with another SQLite program, "
    "and take it out if you know where it comes from"
)


class SchemaAltered(SchemaMismatch):
    """The schema is not what the store's migrations made of it."""


class SchemaRow(NamedTuple):
    """A row of `sqlite_schema`, as bytes: a text there need not be one."""

    type: bytes
    name: bytes
    table: bytes
    sql: bytes | None


SIDECARS = tuple(
    SchemaRow(b"table", name, name, b"CREATE TABLE %b (%b)" % (name, columns))
    for name, columns in (
        (b"_litestream_seq", b"id INTEGER PRIMARY KEY, seq INTEGER"),
        (b"_litestream_lock", b"id INTEGER"),
    )
)
"""Tables that litestream makes and uses: a counter by which it begins a log, and one that stays empty."""


class Difference(NamedTuple):
    """What differs: such as `trigger keep`, and how."""

    what: str
    how: str


def read(connection: apsw.Connection) -> list[SchemaRow]:
    """Every row of the schema, in one order whatever the file's own is, but those of the replica's sidecar."""
    rows = (SchemaRow(*row) for row in connection.execute(ROWS_SQL))
    return sorted((row for row in rows if row not in SIDECARS), key=_place)


def digest(rows: Sequence[SchemaRow]) -> str:
    """SHA-256 in hex over the rows, each field with its length in front."""
    fields = (field for row in rows for field in row)
    parts = (b"-" if field is None else b"%d:%b" % (len(field), field) for field in fields)
    return hashlib.sha256(b"".join(parts)).hexdigest()


def numbers_of(rows: Sequence[SchemaRow]) -> list[int]:
    """The numbers of the migrations that leave this schema behind: also of those that change records alone."""
    found = digest(rows)
    return [number for number, each in enumerate(DIGESTS, 1) if each == found]


def differences(rows: Sequence[SchemaRow], expected: Sequence[SchemaRow]) -> list[Difference]:
    """What was added, altered or taken away, by kind and name."""
    theirs, ours = ({(row.type, row.name): row for row in each} for each in (rows, expected))
    found = [Difference(_named(row), "is not of the schema") for key, row in theirs.items() if key not in ours]
    found += [Difference(_named(row), "is missing from the schema") for key, row in ours.items() if key not in theirs]
    found += [Difference(_named(row), "was altered") for key, row in theirs.items() if ours.get(key, row) != row]
    if len(theirs) != len(rows):
        found.append(Difference("sqlite_schema", "has two rows of one name"))
    return found


def altered(path: str, found: Sequence[Difference]) -> SchemaAltered:
    """The error that names them."""
    told = [f"{each.what} {each.how}" for each in found[:NAMED_AT_MOST]]
    more = f", and {len(found) - len(told)} more" if len(found) > len(told) else ""
    return SchemaAltered(
        path=path,
        reason=f"its schema is not what its migrations make: {', '.join(told)}{more}",
        advice=ADVICE,
        differences=told,
    )


def _place(row: SchemaRow) -> tuple[bytes, bytes, bytes, bytes]:
    return row.type, row.name, row.table, row.sql or b""


def _named(row: SchemaRow) -> str:
    kind, name = (each.decode(errors="replace") for each in (row.type, row.name))
    whole = f"{kind} {name}"[:NAME_CHARS]
    return whole if whole.isprintable() else ascii(whole)
