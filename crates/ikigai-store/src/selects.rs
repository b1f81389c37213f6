//! Questions that are the same text on every engine.

/// What every reading of agents selects, up to its condition.
macro_rules! agents_sql {
    ($condition:literal) => {
        concat!(
            "SELECT a.uuid, a.name, s.uuid, parent.uuid, forked.uuid, a.fork_seq, a.status,
                    a.created_at, h.seq, m.created_at, p.uuid, p.pid, p.started, p.host
             FROM agents a
             JOIN sessions s ON s.id = a.session
             JOIN heads h ON h.agent = a.id
             LEFT JOIN agents parent ON parent.id = a.parent
             LEFT JOIN agents forked ON forked.id = a.fork_agent
             LEFT JOIN messages m ON m.agent = a.id AND m.seq = h.seq
             LEFT JOIN processes p ON p.id = h.owner ",
            $condition
        )
    };
}

pub(crate) use agents_sql;
