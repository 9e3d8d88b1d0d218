-- What is asked of a store of a million turns again and again must not read every row of it.

-- Masked and deleted messages are counted with each look at the store, and there are few of them beside the live ones.
CREATE INDEX message_hidden ON message (state, conversation) WHERE state <> 'live';

-- Where in a conversation a time is. The order of turns is that of their commits, which need not be that of their times.
CREATE INDEX turn_at ON turn (conversation, at, sequence);

-- Conversations are listed by their key, which every index ends with.
CREATE INDEX conversation_listed ON conversation (space);
