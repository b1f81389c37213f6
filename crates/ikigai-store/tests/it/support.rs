//! What the tests share: ids, small batches, and a second process that is this very program.

use std::path::Path;

use ikigai_core::data::{ForkData, ForkRole, UserData};
use ikigai_core::{AgentId, Epoch, Event, Micros, NewRow, ProcessId, RowRef, Seq, SessionId};
use ikigai_store::sqlite::OpenOptions;
use ikigai_store::{
    Batch, Effect, HeadClaim, LeaseClaim, NewAgent, ProcessRecord, SqliteStore, Store, StoreError,
};
use ikigai_testkit::block_on;

/// An agent of tests: each number is another one, the same in every process.
pub fn agent(number: u64) -> AgentId {
    AgentId::from_random(id_bytes(1, number)).expect("it begins with a letter")
}

/// A session of tests.
pub fn session(number: u64) -> SessionId {
    SessionId::from_random(id_bytes(2, number)).expect("it begins with a letter")
}

/// A process of tests.
pub fn process(number: u64) -> ProcessRecord {
    ProcessRecord {
        id: ProcessId::from_random(id_bytes(3, number)).expect("it begins with a letter"),
        host: "here".to_owned(),
        pid: std::process::id(),
        started: Micros(1),
    }
}

fn id_bytes(space: u8, number: u64) -> [u8; 16] {
    let mut bytes = [space; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Opens a store as a process of tests.
pub fn open(path: &Path, number: u64) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(OpenOptions::new(path, process(number)))
}

/// A claim of the holder of a lease.
pub fn claim(agent: AgentId, epoch: Epoch, expected: Seq) -> HeadClaim {
    HeadClaim {
        agent,
        lease: Some(LeaseClaim { epoch, expected }),
    }
}

/// A row that says something.
pub fn said(agent: AgentId, text: &str) -> NewRow {
    let event = Event::User {
        text: text.to_owned(),
        data: UserData::default(),
    };
    event.into_row(agent, Micros(7))
}

/// One side of a fork.
pub fn fork_row(agent: AgentId, role: ForkRole) -> NewRow {
    let event = Event::Fork {
        text: "forked".to_owned(),
        data: Box::new(ForkData {
            role: Some(role),
            ..ForkData::default()
        }),
    };
    event.into_row(agent, Micros(8))
}

/// A batch of one text.
pub fn say(agent: AgentId, epoch: Epoch, expected: Seq, text: &str) -> Batch {
    Batch {
        heads: vec![claim(agent, epoch, expected)],
        rows: vec![said(agent, text)],
        with: Vec::new(),
    }
}

/// A batch of one effect.
pub fn only(effect: Effect) -> Batch {
    Batch {
        with: vec![effect],
        ..Batch::default()
    }
}

/// The effect that makes an agent which this process owns at epoch 1.
pub fn create(agent: AgentId, fork_point: Option<RowRef>) -> Effect {
    Effect::CreateAgent {
        agent: NewAgent {
            id: agent,
            name: format!("agent-{agent}"),
            session: session(1),
            parent: fork_point.map(|row| row.agent),
            fork_point,
            created_at: Micros(5),
        },
        owned: true,
    }
}

/// The effect that makes the session of all agents of tests.
pub fn make_session() -> Effect {
    Effect::MakeSession {
        session: session(1),
        name: "work".to_owned(),
        directory: "/nowhere".to_owned(),
        at: Micros(1),
    }
}

/// Makes the session and an agent that is owned at epoch 1.
pub fn make_agent(store: &dyn Store, agent: AgentId) {
    let batch = Batch {
        with: vec![make_session(), create(agent, None)],
        ..Batch::default()
    };
    block_on(store.commit(batch)).expect("the agent is made");
}
