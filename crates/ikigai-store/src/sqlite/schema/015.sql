-- How far people have read, for the inbox. The empty name stands for everyone: what is here before the
-- upgrade, or comes with an import, counts as read.
CREATE TABLE seen (
    agent INTEGER NOT NULL REFERENCES agents (id),
    person TEXT NOT NULL,
    read_to INTEGER NOT NULL,
    dismissed_to INTEGER NOT NULL,
    PRIMARY KEY (agent, person)
) STRICT, WITHOUT ROWID;

INSERT INTO seen (agent, person, read_to, dismissed_to)
SELECT agent, '', seq, 0 FROM heads WHERE seq > 0;
