-- How the form of each event is counted. What was written before this column is of the first.
ALTER TABLE events ADD COLUMN v INTEGER NOT NULL DEFAULT 1;

-- What is kept beside the events is made anew from them, by the program, in this transaction.
-- Only the numbers of the tasks stay, since the events point at them.
CREATE TABLE earlier AS SELECT id, task_id, seq, ended FROM tasks;
DROP TABLE tasks;

-- Conversations. The newest task of each orders them, without a look at any other task.
CREATE TABLE sessions (
    id         INTEGER PRIMARY KEY,
    session_id TEXT    NOT NULL UNIQUE,
    first_task INTEGER NOT NULL,
    last_task  INTEGER NOT NULL UNIQUE,
    tasks      INTEGER NOT NULL
) STRICT;

-- Where each task is. They are numbered in the order of their creation.
CREATE TABLE tasks (
    id          INTEGER PRIMARY KEY,
    task_id     TEXT    NOT NULL UNIQUE,
    session     INTEGER NOT NULL REFERENCES sessions (id),
    agent       TEXT    NOT NULL,
    parent      TEXT,
    root        TEXT, -- NULL: itself
    model       TEXT,
    status      TEXT    NOT NULL,
    waiting_for TEXT,
    title       TEXT    NOT NULL,
    preview     TEXT,
    seq         INTEGER NOT NULL,
    turns       INTEGER NOT NULL,
    calls       INTEGER NOT NULL,
    messages    INTEGER NOT NULL,
    created_s   INTEGER NOT NULL,
    created_ns  INTEGER NOT NULL,
    last_s      INTEGER NOT NULL,
    last_ns     INTEGER NOT NULL,
    ended       INTEGER NOT NULL
) STRICT;

-- What is taken up again after a restart is found without passing over what is done.
CREATE INDEX tasks_unfinished ON tasks (id) WHERE NOT ended;
CREATE INDEX tasks_by_session ON tasks (session);
CREATE INDEX tasks_by_root ON tasks (root) WHERE root IS NOT NULL;

-- What each task took. The numbers have 64 bits without a sign; the highest look negative.
CREATE TABLE usage (
    task               INTEGER NOT NULL REFERENCES tasks (id),
    model              TEXT    NOT NULL,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER,
    cache_write_tokens INTEGER,
    PRIMARY KEY (task, model)
) STRICT, WITHOUT ROWID;

-- The agents of tasks that have not ended.
CREATE TABLE agents (
    task               INTEGER PRIMARY KEY REFERENCES tasks (id),
    agent_id           TEXT    NOT NULL,
    state              TEXT    NOT NULL,
    last_s             INTEGER NOT NULL,
    last_ns            INTEGER NOT NULL,
    messages_processed INTEGER NOT NULL
) STRICT;

-- Messages that wait for their turn in tasks that have not ended. Each is the event there.
CREATE TABLE inbox (
    position       INTEGER PRIMARY KEY,
    task           INTEGER NOT NULL REFERENCES tasks (id),
    interaction_id TEXT    NOT NULL,
    UNIQUE (task, interaction_id)
) STRICT;

-- Questions to a person, and the answers. Both are events, `asked` and `decided` say where.
CREATE TABLE approvals (
    asked       INTEGER PRIMARY KEY,
    approval_id TEXT    NOT NULL UNIQUE,
    task        INTEGER NOT NULL REFERENCES tasks (id),
    status      TEXT    NOT NULL,
    decided     INTEGER
) STRICT;

CREATE INDEX approvals_pending ON approvals (asked) WHERE status = 'pending';
CREATE INDEX approvals_pending_of_task ON approvals (task) WHERE status = 'pending';
