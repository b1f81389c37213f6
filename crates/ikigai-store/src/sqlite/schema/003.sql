-- What an agent cost is told by its newest `usage` row, however long ago that was.
CREATE INDEX messages_usage ON messages (agent, seq) WHERE kind = 'usage';
