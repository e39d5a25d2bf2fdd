-- The key that pays for each task. Before this column, the owner did.
ALTER TABLE tasks ADD COLUMN payer TEXT;

-- Tasks of an agent, and those that ended so, are found without passing over others. Those that
-- have not ended are few, and `tasks_unfinished` finds them.
CREATE INDEX tasks_by_agent ON tasks (agent);
CREATE INDEX tasks_by_end ON tasks (status) WHERE ended;
CREATE INDEX tasks_by_agent_and_end ON tasks (agent, status) WHERE ended;

-- What was spent, by day of UTC, counted from the year 1. The owner is the payer without a name.
-- The numbers have 64 bits without a sign; the highest look negative.
CREATE TABLE spending (
    day                INTEGER NOT NULL,
    payer              TEXT    NOT NULL,
    agent              TEXT    NOT NULL,
    model              TEXT    NOT NULL,
    calls              INTEGER NOT NULL,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER,
    cache_write_tokens INTEGER,
    PRIMARY KEY (day, payer, agent, model)
) STRICT, WITHOUT ROWID;

-- What was added to the limits of a day and its month. Without a payer, to those of all together.
CREATE TABLE raised (
    day      INTEGER NOT NULL,
    payer    TEXT    NOT NULL,
    nano_usd INTEGER NOT NULL,
    PRIMARY KEY (day, payer)
) STRICT, WITHOUT ROWID;
