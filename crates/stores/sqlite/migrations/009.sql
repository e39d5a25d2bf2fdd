-- A task is one row: where it runs, what it used and the state of its agent are columns. What else is kept about it is
-- found with indexes that cover only the rows with `indexed` set. The newest tasks have it unset and are few: a reader
-- looks at each of them. So a task that ends soon changes no index but that of its id.
CREATE TABLE tasks_9 (
    id               INTEGER PRIMARY KEY,
    task_id          TEXT    NOT NULL UNIQUE,
    indexed          INTEGER NOT NULL,
    ended            INTEGER NOT NULL,
    session          TEXT    NOT NULL,
    agent            TEXT    NOT NULL,
    parent           TEXT,
    root             TEXT, -- NULL: itself
    random_part      TEXT, -- the last group of an id that is a UUID
    model            TEXT,
    status           TEXT    NOT NULL,
    waiting_for      TEXT,
    wait             TEXT, -- why it waits and when it tries again, as JSON
    title            TEXT    NOT NULL,
    preview          TEXT,
    seq              INTEGER NOT NULL,
    turns            INTEGER NOT NULL,
    calls            INTEGER NOT NULL,
    messages         INTEGER NOT NULL,
    created_s        INTEGER NOT NULL,
    created_ns       INTEGER NOT NULL,
    last_s           INTEGER NOT NULL,
    last_ns          INTEGER NOT NULL,
    payer            TEXT, -- NULL: the owner
    imported         TEXT, -- when the imported conversation began and was last changed, as JSON
    history          INTEGER, -- row of the task whose conversation it continues; 0: a task that is not there
    history_seq      INTEGER, -- seq of the last event there that counts
    history_messages INTEGER NOT NULL, -- how many messages the conversation has up to there
    runner           TEXT, -- NULL: the process of the orchestrator
    peer             TEXT,
    spent            TEXT, -- tokens by model, as JSON; NULL: none
    agent_id         TEXT, -- NULL: no state was recorded, or the task has ended
    agent_state      TEXT,
    agent_s          INTEGER,
    agent_ns         INTEGER,
    agent_messages   INTEGER
) STRICT;

INSERT INTO tasks_9
SELECT tasks.id, task_id, 1, ended, session_id, agent, parent, root, random_part, model, status, waiting_for, wait,
       title, preview, seq, turns, calls, messages, created_s, created_ns, tasks.last_s, tasks.last_ns, payer, imported,
       history, history_seq, history_messages, kind, peer,
       (SELECT json_group_object(usage.model, json_patch('{}', json_object(
                   'input_tokens', json(format('%u', input_tokens)),
                   'output_tokens', json(format('%u', output_tokens)),
                   'cache_read_tokens', json(CASE WHEN cache_read_tokens IS NULL THEN 'null'
                                                 ELSE format('%u', cache_read_tokens) END),
                   'cache_write_tokens', json(CASE WHEN cache_write_tokens IS NULL THEN 'null'
                                                  ELSE format('%u', cache_write_tokens) END))))
        FROM usage WHERE usage.task = tasks.id HAVING count(*) > 0),
       agent_id, state, agents.last_s, agents.last_ns, messages_processed
FROM tasks JOIN sessions ON sessions.id = session
LEFT JOIN runners ON runners.task = tasks.id
LEFT JOIN agents ON agents.task = tasks.id;

DROP TABLE tasks;
DROP TABLE runners;
DROP TABLE agents;
DROP TABLE usage;
ALTER TABLE tasks_9 RENAME TO tasks;

-- Sessions of indexed tasks. The newest of them is the newest indexed task.
CREATE TABLE sessions_9 (
    session_id TEXT    NOT NULL PRIMARY KEY,
    first_task INTEGER NOT NULL,
    last_task  INTEGER NOT NULL UNIQUE,
    tasks      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO sessions_9 SELECT session_id, first_task, last_task, tasks FROM sessions ORDER BY session_id;
DROP TABLE sessions;
ALTER TABLE sessions_9 RENAME TO sessions;

CREATE INDEX tasks_unfinished ON tasks (id) WHERE NOT ended AND indexed;
CREATE INDEX tasks_tops ON tasks (id) WHERE parent IS NULL AND indexed;
CREATE INDEX tasks_by_session ON tasks (session) WHERE indexed;
CREATE INDEX tasks_by_root ON tasks (root) WHERE root IS NOT NULL AND indexed;
CREATE INDEX tasks_by_random_part ON tasks (random_part) WHERE random_part IS NOT NULL AND indexed;
CREATE INDEX tasks_by_agent ON tasks (agent) WHERE indexed;
CREATE INDEX tasks_by_end ON tasks (status) WHERE ended AND indexed;
CREATE INDEX tasks_by_agent_and_end ON tasks (agent, status) WHERE ended AND indexed;
