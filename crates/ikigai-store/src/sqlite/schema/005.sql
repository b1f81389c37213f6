-- What is found by words: derived from the log, which it follows. It keeps no text of its own,
-- because most of what is searched lies in `data` and in blobs. A row has the id of its message;
-- `tags` are words of ours: `a` with the agent's id, `s` with the session's, `k` with the kind.
CREATE VIRTUAL TABLE search USING fts5 (
    text, tags, model,
    content = '', tokenize = 'unicode61'
);

-- Up to which message the index goes: one row.
CREATE TABLE search_upto (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    message INTEGER NOT NULL
) STRICT;
INSERT INTO search_upto VALUES (1, 0);
