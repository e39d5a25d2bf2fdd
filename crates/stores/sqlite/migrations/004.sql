-- The first final answer to each request, wherever it was given.
CREATE TABLE replies (
    request  TEXT    NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
