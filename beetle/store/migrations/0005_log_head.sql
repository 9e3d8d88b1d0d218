-- The event log's head as the device identity has signed it last, as one line of text. There is always this one row; its
-- text is null until the first signature.
CREATE TABLE log_head (
  one    INTEGER PRIMARY KEY CHECK (one = 1),
  signed TEXT
) STRICT;

INSERT INTO log_head VALUES (1, NULL);
