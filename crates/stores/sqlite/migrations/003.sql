-- What was asked for by a person is found without passing over what was dispatched for it.
CREATE INDEX tasks_tops ON tasks (id) WHERE parent IS NULL;
