-- Rows of kind `process`, and notices as mail. An older program would skip such rows and send a notice as
-- the user's message, so it must refuse the store.
CREATE INDEX messages_process ON messages (agent, seq) WHERE kind = 'process';
ALTER TABLE mail ADD COLUMN process INTEGER;

-- Background processes: facts of one machine that no row holds. `uuid` is the id of the run that started it.
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    uuid BLOB NOT NULL UNIQUE,
    agent INTEGER NOT NULL REFERENCES agents (id),
    number INTEGER NOT NULL,
    command TEXT NOT NULL,
    started INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    host TEXT NOT NULL,
    directory TEXT NOT NULL,
    pattern TEXT,
    read_to INTEGER NOT NULL,
    ended INTEGER,
    UNIQUE (agent, number)
) STRICT;
CREATE INDEX jobs_open ON jobs (agent, number) WHERE ended IS NULL;
