//! The memory store: the conformance suite, and its own behaviour.

use std::sync::Arc;

use ikigai_core::data::UserData;
use ikigai_core::{AgentId, Epoch, Event, Micros, RowRef, Seq};
use ikigai_store::{
    AgentEffect, Batch, CommitError, Effect, HeadClaim, LeaseClaim, LeaseEffect, Log, NewAgent,
    ReadLog, SessionRecord,
};
use ikigai_testkit::conformance::Rig;
use ikigai_testkit::{IdSource, MemoryStore, block_on, store_conformance};

struct MemoryRig {
    first: MemoryStore,
    second: MemoryStore,
}

impl MemoryRig {
    fn new() -> Self {
        let ids = IdSource::new(0);
        let first = MemoryStore::new(ids.process());
        let second = first.other_process(ids.process());
        Self { first, second }
    }
}

impl Rig for MemoryRig {
    fn store(&self) -> Arc<dyn Log> {
        Arc::new(self.first.clone())
    }

    fn second(&self) -> Arc<dyn Log> {
        Arc::new(self.second.clone())
    }

    fn kill_second(&self) {
        self.second.die();
    }

    fn inject(
        &self,
        agent: AgentId,
        kind_name: &str,
        content: Option<&str>,
        data: Option<&str>,
        control: bool,
    ) -> RowRef {
        self.first.inject(agent, kind_name, content, data, control)
    }
}

store_conformance!(MemoryRig::new());

/// N5b: a process that counts as dead writes until another process takes over;
/// then it is fenced.
#[test]
fn a_process_that_died_writes_until_it_is_replaced() {
    let rig = MemoryRig::new();
    let (agent, session) = (IdSource::new(3).agent(), IdSource::new(4).session());
    let claim = |epoch, expected| HeadClaim {
        agent,
        lease: Some(LeaseClaim {
            epoch: Epoch(epoch),
            expected: Seq(expected),
        }),
    };
    let say = |store: &MemoryStore, epoch, expected, with| {
        let text = "said".to_owned();
        let data = UserData::default();
        let rows = vec![Event::User { text, data }.into_row(agent, Micros(0))];
        let heads = vec![claim(epoch, expected)];
        block_on(store.commit(Batch { heads, rows, with }))
    };
    let make = Effect::MakeSession(SessionRecord {
        id: session,
        name: String::new(),
        directory: String::new(),
        created_at: Micros(0),
        machine: None,
        host: None,
    });
    let create = Effect::Agent(AgentEffect::Create {
        agent: NewAgent {
            id: agent,
            name: "root".to_owned(),
            session,
            parent: None,
            fork_point: None,
            created_at: Micros(0),
        },
        owned: true,
    });
    say(&rig.first, 1, 0, vec![make, create]).unwrap();

    rig.first.die();
    say(&rig.first, 1, 1, Vec::new()).unwrap();
    say(
        &rig.second,
        2,
        2,
        vec![Effect::Lease(LeaseEffect::Take { agent })],
    )
    .unwrap();
    let refused = say(&rig.first, 1, 3, Vec::new());

    assert!(
        matches!(
            refused,
            Err(CommitError::Fenced {
                epoch: Epoch(2),
                ..
            })
        ),
        "{refused:?}"
    );
    let head = block_on(rig.second.head(agent)).unwrap().unwrap();
    assert_eq!(head.seq, Seq(3));
}
