-- The root of the tree that each approval is of: what a tree waits for is found without passing over other trees.
ALTER TABLE approvals ADD COLUMN root TEXT;
UPDATE approvals SET root = (SELECT coalesce(root, task_id) FROM tasks WHERE tasks.id = approvals.task);
CREATE INDEX approvals_pending_in ON approvals (root, asked) WHERE status = 'pending';

-- Tasks that an API key pays for are found without passing over those of others.
CREATE INDEX tasks_by_payer ON tasks (payer) WHERE payer IS NOT NULL AND indexed;
