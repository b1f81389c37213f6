-- Version 1. Names are those of the SQLite engine, so that the same questions can be asked.
--
-- Texts are compared byte by byte, as SQLite does, whatever language the database was made for.

CREATE TABLE sessions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uuid text COLLATE "C" NOT NULL UNIQUE,
    created_at bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    directory text COLLATE "C" NOT NULL
);

-- `heartbeat` is when a process last said that it lives, in microseconds by the server's clock; 0 if
-- it ended in an orderly way. `lock` is the number of the advisory lock that it holds for as long as
-- its listening connection stands.
CREATE TABLE processes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uuid text COLLATE "C" NOT NULL UNIQUE,
    pid bigint NOT NULL,
    started bigint NOT NULL,
    host text NOT NULL,
    lock bigint NOT NULL,
    heartbeat bigint NOT NULL
) WITH (fillfactor = 50);

-- The log. No reference to `agents`: each append goes through the agent's head, which has one, and
-- looking it up again for each row would cost more than the row.
CREATE TABLE messages (
    id bigint GENERATED ALWAYS AS IDENTITY,
    agent bigint NOT NULL,
    seq bigint NOT NULL,
    created_at bigint NOT NULL,
    control boolean NOT NULL,
    kind text COLLATE "C" NOT NULL,
    content text COLLATE "C",
    data text COLLATE "C",
    PRIMARY KEY (agent, seq)
);
CREATE INDEX messages_control ON messages (agent, seq) WHERE control;
CREATE INDEX messages_usage ON messages (agent, seq) WHERE kind = 'usage';
CREATE INDEX messages_user ON messages (agent, seq) WHERE kind = 'user';

CREATE TABLE agents (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uuid text COLLATE "C" NOT NULL UNIQUE,
    session bigint NOT NULL REFERENCES sessions (id),
    parent bigint REFERENCES agents (id),
    fork_agent bigint,
    fork_seq bigint,
    created_at bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    FOREIGN KEY (fork_agent, fork_seq) REFERENCES messages (agent, seq)
);
CREATE UNIQUE INDEX agents_living_name ON agents (name) WHERE status = 'running';
CREATE INDEX agents_session ON agents (session);
CREATE INDEX agents_living_parent ON agents (parent) WHERE status = 'running';

-- Narrow, because each append updates one of its rows; with room, so that it stays in its page.
CREATE TABLE heads (
    agent bigint PRIMARY KEY REFERENCES agents (id),
    seq bigint NOT NULL,
    epoch bigint NOT NULL,
    owner bigint REFERENCES processes (id)
) WITH (fillfactor = 50);
CREATE INDEX heads_owner ON heads (owner) WHERE owner IS NOT NULL;

CREATE TABLE mail (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uuid bytea NOT NULL UNIQUE,
    receiver bigint NOT NULL REFERENCES agents (id),
    sender bigint REFERENCES agents (id),
    sent_at bigint NOT NULL,
    state text COLLATE "C" NOT NULL,
    shown_agent bigint,
    shown_seq bigint,
    text text NOT NULL,
    FOREIGN KEY (shown_agent, shown_seq) REFERENCES messages (agent, seq)
);
CREATE INDEX mail_receiver ON mail (receiver, id);
CREATE INDEX mail_queued ON mail (receiver, id) WHERE state = 'queued';

CREATE TABLE drafts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agent bigint NOT NULL REFERENCES agents (id),
    part bigint NOT NULL,
    at bigint NOT NULL,
    text text NOT NULL,
    UNIQUE (agent, part)
);

CREATE TABLE tool_runs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uuid bytea NOT NULL UNIQUE,
    agent bigint NOT NULL,
    seq bigint NOT NULL,
    class text COLLATE "C" NOT NULL,
    started bigint NOT NULL,
    deadline bigint NOT NULL,
    ended bigint,
    FOREIGN KEY (agent, seq) REFERENCES messages (agent, seq)
);
CREATE INDEX tool_runs_open ON tool_runs (agent, started, id) WHERE ended IS NULL;

CREATE TABLE blobs (
    id bigint GENERATED ALWAYS AS IDENTITY,
    hash bytea NOT NULL,
    part bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (hash, part)
);

CREATE TABLE paths (
    id bigint GENERATED ALWAYS AS IDENTITY,
    agent bigint NOT NULL REFERENCES agents (id),
    upto bigint NOT NULL,
    folded text NOT NULL,
    PRIMARY KEY (agent, upto)
);

-- The newest write without a row of each process, so that after a broken commit it can be told
-- whether it was stored.
CREATE TABLE witnesses (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    process text COLLATE "C" NOT NULL UNIQUE,
    number bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);
