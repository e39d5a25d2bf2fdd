//! Agents as markdown files.
