-- People and machines. A session belongs to a machine: names are unique among its running agents, no
-- longer in the whole log. Rows and messages of people have an author; none means the engine or the model.
ALTER TABLE messages ADD COLUMN author TEXT;
ALTER TABLE mail ADD COLUMN author TEXT;
ALTER TABLE processes ADD COLUMN machine TEXT;
ALTER TABLE processes ADD COLUMN person TEXT;
ALTER TABLE sessions ADD COLUMN machine TEXT;
ALTER TABLE sessions ADD COLUMN host TEXT;

-- Older processes left only a host name. The first machine of that name claims the session; a session that
-- no process holds goes to the first machine that works with the log.
UPDATE sessions SET host = (
    SELECT p.host FROM agents a JOIN heads h ON h.agent = a.id JOIN processes p ON p.id = h.owner
    WHERE a.session = sessions.id ORDER BY p.started DESC, p.id DESC LIMIT 1
);
CREATE INDEX sessions_unclaimed ON sessions (id) WHERE machine IS NULL;
CREATE INDEX sessions_directory ON sessions (directory);

DROP INDEX agents_living_name;
CREATE UNIQUE INDEX agents_living_in_session ON agents (session, name) WHERE status = 'running';
CREATE INDEX agents_living_name ON agents (name) WHERE status = 'running';

DROP VIEW v_messages;
DROP VIEW v_agents;
CREATE VIEW v_agents AS
SELECT a.uuid AS agent, a.name, a.status, p.uuid AS parent, p.name AS parent_name,
       f.uuid AS fork_agent, a.fork_seq, s.name AS workspace, s.directory, s.host, h.seq AS last_seq,
       strftime('%Y-%m-%d %H:%M:%f', a.created_at / 1e6, 'unixepoch') AS created_at
FROM agents a
JOIN sessions s ON s.id = a.session
LEFT JOIN heads h ON h.agent = a.id
LEFT JOIN agents p ON p.id = a.parent
LEFT JOIN agents f ON f.id = a.fork_agent;

CREATE VIEW v_messages AS
SELECT m.id, a.uuid AS agent, a.name AS agent_name, m.seq, m.kind, m.author,
       strftime('%Y-%m-%d %H:%M:%f', m.created_at / 1e6, 'unixepoch') AS created_at, m.content,
       CASE WHEN json_valid(m.data) THEN m.data END AS data
FROM messages m
JOIN agents a ON a.id = m.agent;
