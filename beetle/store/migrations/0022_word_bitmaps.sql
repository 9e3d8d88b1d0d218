-- Which messages hold a common word, as bitmaps of 32,768 messages each: the recall index reads them one by one. `place` is the
-- number of the bitmap's first message, shifted to make room for the words of the same messages.
CREATE TABLE word_bitmap (
  place INTEGER PRIMARY KEY,
  word  TEXT NOT NULL,
  rows  BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX word_bitmap_word ON word_bitmap (word, place);
