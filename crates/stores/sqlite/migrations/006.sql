-- Tasks that were pruned. Their events are gone; their ids and numbers are not given out again.
CREATE TABLE pruned (
    id       INTEGER PRIMARY KEY, -- of the row in `tasks`
    task_id  TEXT    NOT NULL UNIQUE,
    status   TEXT    NOT NULL,
    ended_s  INTEGER NOT NULL,
    pruned_s INTEGER NOT NULL,
    events   INTEGER NOT NULL
) STRICT;

-- The answer that each idempotency key was given, also for pruned tasks: a key is never used twice.
ALTER TABLE keys RENAME TO keys_before;
CREATE TABLE keys (
    key      TEXT    NOT NULL PRIMARY KEY,
    task     INTEGER NOT NULL, -- of `tasks` or `pruned`
    position INTEGER NOT NULL,
    seq      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO keys SELECT key, task, position, seq FROM keys_before;
DROP TABLE keys_before;
