-- How far people have read, for the inbox. The empty name stands for everyone: what is here before the
-- upgrade, or comes with an import, counts as read.
CREATE TABLE seen (
    agent bigint NOT NULL REFERENCES agents (id),
    person text NOT NULL,
    read_to bigint NOT NULL,
    dismissed_to bigint NOT NULL,
    PRIMARY KEY (agent, person)
);

INSERT INTO seen (agent, person, read_to, dismissed_to)
SELECT agent, '', seq, 0 FROM heads WHERE seq > 0;
