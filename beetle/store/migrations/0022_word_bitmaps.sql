-- Which messages hold a common word, as bitmaps: the recall index gives their rows one by one. A block is 32,768 messages. `place` is
-- the block and, in its last 32 bits, a sum of the word; 0 there is the block's mark, which says how many bitmaps it has.
CREATE TABLE word_bitmap (
  place INTEGER PRIMARY KEY,
  word  TEXT NOT NULL,
  rows  BLOB NOT NULL
) STRICT;
