-- Requests to the process that holds an agent, which may be on another machine. A request is taken by the
-- holder and then answered; one that nothing takes expires, and stays here.
CREATE TABLE requests (
    id INTEGER PRIMARY KEY,
    uuid BLOB NOT NULL UNIQUE,
    agent INTEGER NOT NULL REFERENCES agents (id),
    author TEXT,
    sent_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    body TEXT NOT NULL,
    answer TEXT
) STRICT;
CREATE INDEX requests_waiting ON requests (agent, id) WHERE state = 'waiting';
