-- The task whose conversation a task continues: its row, the seq of its last event that counts, and how many messages
-- the conversation has up to there. NULL: none. 0: a task that is not there.
ALTER TABLE tasks ADD COLUMN history INTEGER;
ALTER TABLE tasks ADD COLUMN history_seq INTEGER;
ALTER TABLE tasks ADD COLUMN history_messages INTEGER NOT NULL DEFAULT 0;

-- The state of a long task at one of its events, so that not all of them are read to go on with it. A row may be
-- absent or wrong: the reader compares it with the events.
CREATE TABLE checkpoints (
    task     INTEGER PRIMARY KEY REFERENCES tasks (id),
    seq      INTEGER NOT NULL,
    position INTEGER NOT NULL, -- of the event with that seq
    checksum INTEGER NOT NULL,
    data     TEXT    NOT NULL
) STRICT;
