-- How many messages came before what is sent is counted without reading them.
CREATE INDEX messages_user ON messages (agent, seq) WHERE kind = 'user';
