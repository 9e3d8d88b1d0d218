-- A commit writes each page that it touches. Nearly all messages have the time of their turn, and turns are found by their times:
-- an index leads to the others alone.
ALTER TABLE message ADD COLUMN apart INTEGER NOT NULL DEFAULT 0;
UPDATE message SET apart = 1 FROM turn WHERE turn.turn = message.turn AND turn.at <> message.at;
DROP INDEX message_at;
CREATE INDEX message_apart ON message (conversation, at) WHERE apart = 1;
-- Which run cuts a day of the table of contents: 0 once its events have changed since that run has taken it.
ALTER TABLE toc_outbox ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;
