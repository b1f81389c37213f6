//! Checks of spending caps: reservations, totals, and numbers of agents.

use std::sync::Arc;
use std::thread;

use ikigai_core::data::{Amounts, UsageData};
use ikigai_core::{AgentId, Epoch, Event, Seq};
use ikigai_store::{
    AgentEffect, BudgetEffect, CommitError, Committed, Effect, Log, NewAgent, ReservationId,
    Spending, SpendingLimit, Status,
};

use super::Rig;
use super::samples::{at, create, give, set_status, take};
use super::workbench::{Holder, Workbench};
use crate::block_on;

const CAP: u64 = 100;

fn tokens(tokens: u64) -> Spending {
    Spending {
        nano_usd: 2 * tokens,
        tokens,
    }
}

fn cap(root: AgentId, tokens: u64) -> SpendingLimit {
    SpendingLimit {
        root,
        nano_usd: None,
        tokens: Some(tokens),
    }
}

/// Makes a running agent below a parent and holds its lease.
async fn child(desk: &Workbench, parent: AgentId, name: &str) -> Holder {
    let agent = NewAgent {
        parent: Some(parent),
        ..desk.new_agent(name)
    };
    let id = agent.id;
    desk.done([create(agent, true)]).await;
    desk.holder(id, Epoch(1), Seq(0))
}

fn reservation(by: &Holder, id: u128, cap: SpendingLimit, estimate: u64) -> Effect {
    Effect::Budget(BudgetEffect::Reserve {
        reservation: ReservationId(id),
        agent: by.agent,
        epoch: by.epoch,
        cap,
        estimate: tokens(estimate),
    })
}

async fn reserve(
    by: &Holder,
    id: u128,
    cap: SpendingLimit,
    estimate: u64,
) -> Result<Committed, CommitError> {
    let effect = reservation(by, id, cap, estimate);
    by.clone().commit(Vec::new(), vec![effect]).await
}

fn release(id: u128) -> Effect {
    let reservation = ReservationId(id);
    Effect::Budget(BudgetEffect::Release { reservation })
}

/// Stores a response of some tokens, as the sum of an agent's responses so far.
async fn spend(by: &mut Holder, amount: u64, sum: u64, with: Vec<Effect>) {
    let amounts = |tokens: u64| Amounts {
        input: Some(tokens),
        cost_nano_usd: Some(2 * tokens),
        ..Amounts::default()
    };
    let usage = Event::Usage(UsageData {
        sum: Some(amounts(sum)),
        amounts: amounts(amount),
        ..UsageData::default()
    });
    let row = usage.into_row(by.agent, at(0));
    by.commit(vec![row], with).await.unwrap();
}

/// Reads what was spent and reserved below an agent, from the refusal under a cap of nothing.
async fn figures(by: &Holder, root: AgentId) -> (Spending, Spending) {
    match reserve(by, u128::MAX, cap(root, 0), 1).await {
        Err(CommitError::BudgetReached {
            root: named,
            spent,
            reserved,
        }) if named == root => (spent, reserved),
        other => panic!("{other:?}"),
    }
}

/// A request is admitted while spent and reserved amounts of the tree stay below the cap.
pub(super) async fn reservations_keep_a_tree_below_its_cap(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let second = desk.second(rig);
    let mut root = desk.agent("root").await;
    let other = child(&second, root.agent, "other").await;
    let third = child(&desk, other.agent, "third").await;
    let capped = cap(root.agent, CAP);

    reserve(&root, 1, capped, 60).await.unwrap();
    reserve(&other, 2, capped, 60).await.unwrap();
    let refused = reserve(&third, 3, capped, 1).await.unwrap_err();

    let CommitError::BudgetReached {
        root: named,
        spent,
        reserved,
    } = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!(named, root.agent);
    assert_eq!((spent, reserved), (tokens(0), tokens(120)));
    // A request that cost less leaves room for another.
    spend(&mut root, 39, 39, vec![release(1)]).await;
    assert_eq!(figures(&third, root.agent).await, (tokens(39), tokens(60)));
    reserve(&third, 3, capped, 500).await.unwrap();
    // A cap of dollars alone does not look at tokens.
    let dollars = SpendingLimit {
        nano_usd: Some(1_000_000),
        tokens: None,
        ..capped
    };
    reserve(&root, 4, dollars, 1).await.unwrap();
    // A reservation under a cap of another agent is counted there alone.
    assert_eq!(figures(&other, other.agent).await, (tokens(0), tokens(0)));
    let unknown = cap(desk.ids.agent(), CAP);
    let refused = reserve(&root, 5, unknown, 1).await;
    assert_refused!(refused, CommitError::NoAgent(_));
}

/// A commit that is repeated reserves once, and a refused batch reserves nothing.
pub(super) async fn a_repeated_reservation_counts_once(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut root = desk.agent("root").await;
    let capped = cap(root.agent, CAP);

    reserve(&root, 1, capped, CAP).await.unwrap();
    reserve(&root, 1, capped, CAP).await.unwrap();

    assert_eq!(figures(&root, root.agent).await.1, tokens(CAP));
    root.commit(Vec::new(), vec![release(1), release(1), release(9)])
        .await
        .unwrap();
    let mut late = root.clone();
    late.epoch = Epoch(7);
    let refused = reserve(&late, 2, capped, 1).await;
    assert_refused!(refused, CommitError::Fenced { .. });
    assert_eq!(figures(&root, root.agent).await.1, tokens(0));
}

/// The total of a cap has all responses of the tree, older ones and those of dead agents too.
pub(super) async fn totals_of_a_cap_follow_usage_rows(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut root = desk.agent("root").await;
    let mut middle = child(&desk, root.agent, "middle").await;
    let mut leaf = child(&desk, middle.agent, "leaf").await;
    spend(&mut root, 1, 1, Vec::new()).await;
    spend(&mut middle, 10, 10, Vec::new()).await;
    spend(&mut middle, 20, 30, Vec::new()).await;
    spend(&mut leaf, 100, 100, Vec::new()).await;
    assert_eq!(figures(&root, root.agent).await.0, tokens(131));

    spend(&mut leaf, 200, 300, Vec::new()).await;
    desk.done([set_status(leaf.agent, Status::Dead)]).await;
    spend(&mut middle, 5, 35, Vec::new()).await;

    assert_eq!(figures(&root, root.agent).await.0, tokens(336));
    assert_eq!(figures(&middle, middle.agent).await.0, tokens(335));
    spend(&mut root, 1, 2, Vec::new()).await;
    assert_eq!(figures(&root, root.agent).await.0, tokens(337));
    assert_eq!(figures(&middle, middle.agent).await.0, tokens(335));
    // No amount that a provider reports is too large.
    let huge = u64::MAX / 4;
    spend(&mut root, huge, huge, Vec::new()).await;
    spend(&mut root, huge, huge, Vec::new()).await;
    spend(&mut root, huge, huge, Vec::new()).await;
    let (spent, _) = figures(&root, root.agent).await;
    assert!(spent.tokens >= huge, "{spent:?}");
}

/// Reservations of a process end with it, and those of an agent with its lease.
pub(super) async fn reservations_end_with_process_and_lease(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let root = desk.agent("root").await;
    let capped = cap(root.agent, CAP);
    let second = desk.second(rig);
    let other = child(&second, root.agent, "other").await;
    let given = child(&second, root.agent, "given").await;
    reserve(&other, 1, capped, 50).await.unwrap();
    reserve(&given, 2, capped, 20).await.unwrap();
    assert_eq!(figures(&root, root.agent).await.1, tokens(70));

    second.done([give(given.agent, given.epoch.0)]).await;

    assert_eq!(figures(&root, root.agent).await.1, tokens(50));
    let agent = other.agent;
    drop((second, other, given));
    rig.kill_second();
    assert_eq!(figures(&root, root.agent).await.1, tokens(0));
    let taken = desk.effects([take(agent)]);
    let (_, epoch) = taken.await.unwrap().leases[0];
    let heir = desk.holder(agent, epoch, Seq(0));
    reserve(&heir, 1, capped, 30).await.unwrap();
    assert_eq!(figures(&root, root.agent).await.1, tokens(30));
}

/// Requests of two processes at the same time never pass a cap together.
pub(super) async fn processes_reserve_one_after_the_other(rig: &dyn Rig) {
    const EACH: u128 = 16;
    let desk = Workbench::first(rig).await;
    let second = desk.second(rig);
    let root = desk.agent("root").await;
    let capped = cap(root.agent, CAP);
    let mut asking = Vec::new();
    for number in 0..EACH {
        for (desk, from) in [(&desk, 0), (&second, EACH)] {
            let id = from + number;
            let by = child(desk, root.agent, &format!("child-{id}")).await;
            asking.push((by, id));
        }
    }

    let admitted: usize = thread::scope(|scope| {
        let running: Vec<_> = asking
            .into_iter()
            .map(|(mut by, id)| {
                scope.spawn(move || {
                    block_on(async {
                        // The first totals are made while others spend.
                        spend(&mut by, 1, 1, Vec::new()).await;
                        let admitted = reserve(&by, id, capped, 10).await.is_ok();
                        spend(&mut by, 1, 2, Vec::new()).await;
                        usize::from(admitted)
                    })
                })
            })
            .collect();
        running.into_iter().map(|it| it.join().unwrap()).sum()
    });

    let (spent, reserved) = figures(&root, root.agent).await;
    assert_eq!(spent, tokens(4 * u64::try_from(EACH).unwrap()));
    let admitted = u64::try_from(admitted).unwrap();
    assert_eq!(reserved, tokens(10 * admitted));
    assert!(admitted > 0);
    // Whatever the order, the last one was admitted below the cap.
    assert!(10 * (admitted - 1) < CAP, "{admitted} were admitted");
}

/// An agent is created only while fewer run in the tree than its cap allows.
pub(super) async fn agents_below_a_cap_are_counted(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let root = desk.agent("root").await;
    let middle = child(&desk, root.agent, "middle").await;
    let below = |name: &str| NewAgent {
        parent: Some(middle.agent),
        ..desk.new_agent(name)
    };
    let make = |agent: NewAgent, root: AgentId| {
        let count = BudgetEffect::CountAgent { root, most: 3 };
        let create = AgentEffect::Create { agent, owned: true };
        desk.effects([Effect::Budget(count), Effect::Agent(create)])
    };

    let leaf = below("leaf");
    let id = leaf.id;
    make(leaf, root.agent).await.unwrap();
    let refused = make(below("more"), root.agent).await;

    assert_refused!(
        refused,
        CommitError::TooManyAgents { root: named, most: 3, running: 3 }
            if *named == root.agent
    );
    make(below("one"), middle.agent).await.unwrap();
    let refused = make(below("another"), middle.agent).await;
    assert_refused!(refused, CommitError::TooManyAgents { .. });
    desk.done([set_status(id, Status::Dead)]).await;
    make(below("last"), middle.agent).await.unwrap();
    let store: Arc<dyn Log> = Arc::clone(&desk.store);
    assert_eq!(store.agents(None).await.unwrap().len(), 5);
}
