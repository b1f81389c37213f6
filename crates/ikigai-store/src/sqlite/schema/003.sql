-- What an agent cost is told by its newest `usage` row, however long ago that was.
CREATE INDEX messages_usage ON messages (agent, seq) WHERE kind = 'usage';
-- A fork asks how many children its parent has, however many agents there ever were.
CREATE INDEX agents_living_parent ON agents (parent) WHERE status = 'running';
