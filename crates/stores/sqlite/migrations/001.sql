-- Everything that happened. `position` counts from 1 without a gap.
CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    task     INTEGER NOT NULL REFERENCES tasks (id),
    seq      INTEGER NOT NULL,
    at_s     INTEGER NOT NULL,
    at_ns    INTEGER NOT NULL,
    type     TEXT    NOT NULL,
    data     TEXT    NOT NULL
) STRICT;

-- Within a task the order of positions is that of seqs, and an index ends with the primary key:
-- this one finds what is behind a position without passing over what is before it.
CREATE INDEX events_by_task ON events (task);

-- Where each task is.
CREATE TABLE tasks (
    id      INTEGER PRIMARY KEY,
    task_id TEXT    NOT NULL UNIQUE,
    seq     INTEGER NOT NULL,
    ended   INTEGER NOT NULL
) STRICT;

-- What is taken up again after a restart is found without passing over what is done.
CREATE INDEX tasks_unfinished ON tasks (id) WHERE NOT ended;

-- The answer that each idempotency key was given.
CREATE TABLE keys (
    key      TEXT    NOT NULL PRIMARY KEY,
    task     INTEGER NOT NULL REFERENCES tasks (id),
    position INTEGER NOT NULL,
    seq      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
