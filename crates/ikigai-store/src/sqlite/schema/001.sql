-- Version 1. Small columns come first and long ones last, so that a reader of the small ones does
-- not walk through overflow pages.

CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    name TEXT NOT NULL,
    directory TEXT NOT NULL
) STRICT;

CREATE TABLE agents (
    id INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL REFERENCES sessions (id),
    parent INTEGER REFERENCES agents (id),
    fork_agent INTEGER,
    fork_seq INTEGER,
    created_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    name TEXT NOT NULL,
    FOREIGN KEY (fork_agent, fork_seq) REFERENCES messages (agent, seq)
) STRICT;
CREATE UNIQUE INDEX agents_living_name ON agents (name) WHERE status = 'running';
CREATE INDEX agents_session ON agents (session);

CREATE TABLE processes (
    id INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL UNIQUE,
    pid INTEGER NOT NULL,
    started INTEGER NOT NULL,
    host TEXT NOT NULL
) STRICT;

-- Narrow, because each append updates one of its rows.
CREATE TABLE heads (
    agent INTEGER PRIMARY KEY REFERENCES agents (id),
    seq INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    owner INTEGER REFERENCES processes (id)
) STRICT;
CREATE INDEX heads_owner ON heads (owner) WHERE owner IS NOT NULL;

CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    agent INTEGER NOT NULL REFERENCES agents (id),
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    control INTEGER NOT NULL CHECK (control IN (0, 1)),
    created_at INTEGER NOT NULL,
    content TEXT,
    data TEXT,
    UNIQUE (agent, seq)
) STRICT;
CREATE INDEX messages_control ON messages (agent, seq) WHERE control = 1;

CREATE TABLE mail (
    id INTEGER PRIMARY KEY,
    uuid BLOB NOT NULL UNIQUE,
    receiver INTEGER NOT NULL REFERENCES agents (id),
    sender INTEGER REFERENCES agents (id),
    sent_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    shown_agent INTEGER,
    shown_seq INTEGER,
    text TEXT NOT NULL,
    FOREIGN KEY (shown_agent, shown_seq) REFERENCES messages (agent, seq)
) STRICT;
CREATE INDEX mail_receiver ON mail (receiver, id);

CREATE TABLE drafts (
    id INTEGER PRIMARY KEY,
    agent INTEGER NOT NULL REFERENCES agents (id),
    part INTEGER NOT NULL,
    at INTEGER NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (agent, part)
) STRICT;

CREATE TABLE tool_runs (
    id INTEGER PRIMARY KEY,
    uuid BLOB NOT NULL UNIQUE,
    agent INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    class TEXT NOT NULL,
    started INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    ended INTEGER,
    FOREIGN KEY (agent, seq) REFERENCES messages (agent, seq)
) STRICT;
CREATE INDEX tool_runs_open ON tool_runs (agent, started, id) WHERE ended IS NULL;

-- A rowid table: as WITHOUT ROWID the large parts would lie in the tree that is searched.
CREATE TABLE blobs (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL,
    part INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    UNIQUE (hash, part)
) STRICT;

CREATE TABLE paths (
    id INTEGER PRIMARY KEY,
    agent INTEGER NOT NULL REFERENCES agents (id),
    upto INTEGER NOT NULL,
    folded TEXT NOT NULL,
    UNIQUE (agent, upto)
) STRICT;

-- The newest write without a row of each process, so that after a broken commit it can be told
-- whether it was stored.
CREATE TABLE witnesses (
    id INTEGER PRIMARY KEY,
    process TEXT NOT NULL UNIQUE,
    number INTEGER NOT NULL
) STRICT;
