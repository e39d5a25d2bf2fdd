//! What people see, as data and text: trees, transcripts, diffs, cost and status lines.
