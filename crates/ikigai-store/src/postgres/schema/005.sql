-- Views for people: agents by their permanent ids and names, times and data in types of the server.
-- A reader needs the same rights as for the tables behind them.
CREATE VIEW v_agents WITH (security_invoker = true) AS
SELECT a.uuid AS agent, a.name, a.status, p.uuid AS parent, p.name AS parent_name,
       f.uuid AS fork_agent, a.fork_seq, s.directory, h.seq AS last_seq,
       to_timestamp(a.created_at / 1e6) AS created_at
FROM agents a
JOIN sessions s ON s.id = a.session
LEFT JOIN heads h ON h.agent = a.id
LEFT JOIN agents p ON p.id = a.parent
LEFT JOIN agents f ON f.id = a.fork_agent;

CREATE VIEW v_messages WITH (security_invoker = true) AS
SELECT m.id, a.uuid AS agent, a.name AS agent_name, m.seq, m.kind,
       to_timestamp(m.created_at / 1e6) AS created_at, m.content, m.data::json AS data
FROM messages m
JOIN agents a ON a.id = m.agent;
