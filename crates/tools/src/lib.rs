//! What an agent can do with files: read, write, edit, grep, glob.
