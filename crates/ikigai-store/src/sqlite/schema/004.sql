-- A fork asks how many children its parent has, however many agents there ever were.
CREATE INDEX agents_living_parent ON agents (parent) WHERE status = 'running';
