-- Views for people: agents by their permanent ids and names, times as text, data only if it is JSON.
CREATE VIEW v_agents AS
SELECT a.uuid AS agent, a.name, a.status, p.uuid AS parent, p.name AS parent_name,
       f.uuid AS fork_agent, a.fork_seq, s.directory, h.seq AS last_seq,
       strftime('%Y-%m-%d %H:%M:%f', a.created_at / 1e6, 'unixepoch') AS created_at
FROM agents a
JOIN sessions s ON s.id = a.session
LEFT JOIN heads h ON h.agent = a.id
LEFT JOIN agents p ON p.id = a.parent
LEFT JOIN agents f ON f.id = a.fork_agent;

CREATE VIEW v_messages AS
SELECT m.id, a.uuid AS agent, a.name AS agent_name, m.seq, m.kind,
       strftime('%Y-%m-%d %H:%M:%f', m.created_at / 1e6, 'unixepoch') AS created_at, m.content,
       CASE WHEN json_valid(m.data) THEN m.data END AS data
FROM messages m
JOIN agents a ON a.id = m.agent;
