-- The identities that a store had before one was lost: what bears their signature is told by their public keys.
CREATE TABLE former_identity (
  former_identity INTEGER PRIMARY KEY,
  check_value     TEXT NOT NULL,
  public_key      BLOB,
  renewed_at      INTEGER NOT NULL
) STRICT;

-- Their keys of spaces, as they wrapped them. Nobody opens them any more.
CREATE TABLE former_space_key (
  former_identity INTEGER NOT NULL REFERENCES former_identity,
  space           INTEGER NOT NULL REFERENCES space,
  wrapped         BLOB NOT NULL,
  created_at      INTEGER NOT NULL,
  PRIMARY KEY (former_identity, space)
) STRICT, WITHOUT ROWID;

-- What was sealed under the key of a former identity stays closed; null: under the key of today.
ALTER TABLE private_item ADD COLUMN former_identity INTEGER REFERENCES former_identity;
ALTER TABLE candidate_body ADD COLUMN former_identity INTEGER REFERENCES former_identity;
