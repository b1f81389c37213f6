-- Rows of kind `process`, and notices as mail. An older program would skip such rows and send a notice as
-- the user's message, so it must refuse the store.
CREATE INDEX messages_process ON messages (agent, seq) WHERE kind = 'process';
ALTER TABLE mail ADD COLUMN process bigint;

-- Background processes: facts of one machine that no row holds. `uuid` is the id of the run that started it.
CREATE TABLE jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uuid bytea NOT NULL UNIQUE,
    agent bigint NOT NULL REFERENCES agents (id),
    number bigint NOT NULL,
    command text NOT NULL,
    started bigint NOT NULL,
    deadline bigint NOT NULL,
    host text NOT NULL,
    directory text NOT NULL,
    pattern text,
    read_to bigint NOT NULL,
    ended bigint,
    UNIQUE (agent, number)
);
CREATE INDEX jobs_open ON jobs (agent, number) WHERE ended IS NULL;
