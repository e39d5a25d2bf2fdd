-- The last group of an id that is a UUID, which is random: a short form of it names the task. NULL for other ids.
ALTER TABLE tasks ADD COLUMN random_part TEXT;
CREATE INDEX tasks_by_random_part ON tasks (random_part) WHERE random_part IS NOT NULL;

-- Why a task waits for its model and when it asks again, as JSON. NULL: it does not wait for it.
ALTER TABLE tasks ADD COLUMN wait TEXT;

-- When the conversation of an imported task began and was last changed, as JSON. NULL: it was not imported.
ALTER TABLE tasks ADD COLUMN imported TEXT;

-- Where each task runs that the process of the orchestrator does not run itself.
CREATE TABLE runners (
    task INTEGER PRIMARY KEY REFERENCES tasks (id),
    kind TEXT    NOT NULL,
    peer TEXT
) STRICT;

-- A task that came from a file has no runner any more. An event that cannot be read names none.
INSERT INTO runners
SELECT task, json_extract(data, '$.runner.kind'),
       CASE json_type(data, '$.runner.config.peer')
           WHEN 'text' THEN json_extract(data, '$.runner.config.peer')
       END
FROM events
WHERE seq = 1 AND type = 'task_created'
  AND CASE WHEN json_valid(data) THEN json_type(data, '$.runner.kind') = 'text' ELSE 0 END
  AND task NOT IN (SELECT task FROM events WHERE type = 'task_restored');
