-- Requests to the process that holds an agent, which may be on another machine. A request is taken by the
-- holder and then answered; one that nothing takes expires, and stays here.
CREATE TABLE requests (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uuid bytea NOT NULL UNIQUE,
    agent bigint NOT NULL REFERENCES agents (id),
    author text COLLATE "C",
    sent_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    state text COLLATE "C" NOT NULL,
    body text NOT NULL,
    answer text
);
CREATE INDEX requests_waiting ON requests (agent, id) WHERE state = 'waiting';
