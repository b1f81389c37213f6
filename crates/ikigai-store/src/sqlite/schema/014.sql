-- Totals of agents with a spending cap and their descendants: derived, made by the first reservation.
CREATE TABLE spending (
    agent INTEGER PRIMARY KEY REFERENCES agents (id),
    nano_usd INTEGER NOT NULL,
    tokens INTEGER NOT NULL
) STRICT;

-- Estimates of running requests, one for each cap above the agent: few rows at any time. An older program
-- would send requests without them, so it must refuse the store.
CREATE TABLE reservations (
    id INTEGER PRIMARY KEY,
    root INTEGER NOT NULL REFERENCES agents (id),
    agent INTEGER NOT NULL REFERENCES agents (id),
    process INTEGER NOT NULL REFERENCES processes (id) ON DELETE CASCADE,
    nano_usd INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    uuid BLOB NOT NULL,
    UNIQUE (root, uuid)
) STRICT;

-- A total is made from all descendants, dead ones too.
CREATE INDEX agents_parent ON agents (parent);
