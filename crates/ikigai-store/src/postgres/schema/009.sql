-- Totals of agents with a spending cap and their descendants: derived, made by the first reservation.
CREATE TABLE spending (
    agent bigint PRIMARY KEY REFERENCES agents (id),
    nano_usd bigint NOT NULL,
    tokens bigint NOT NULL
);

-- Estimates of running requests, one for each cap above the agent: few rows at any time. An older program
-- would send requests without them, so it must refuse the store.
CREATE TABLE reservations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    root bigint NOT NULL REFERENCES agents (id),
    agent bigint NOT NULL REFERENCES agents (id),
    process bigint NOT NULL REFERENCES processes (id) ON DELETE CASCADE,
    nano_usd bigint NOT NULL,
    tokens bigint NOT NULL,
    uuid bytea NOT NULL,
    UNIQUE (root, uuid)
);

-- A total is made from all descendants, dead ones too.
CREATE INDEX agents_parent ON agents (parent);
