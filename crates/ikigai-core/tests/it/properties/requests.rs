//! Properties of requests: total, valid, independent of the rows read, growing at their end.

use ikigai_core::data::{self, CommandData};
use ikigai_core::project::{
    Filling, assemble, block_tokens, estimate_request, estimate_tokens, is_full,
};
use ikigai_core::{
    Block, Budget, CannotProject, Kind, Request, Role, Row, RowRef, Seq, Target, View, project,
};
use ikigai_store::Agent;
use ikigai_testkit::generate::{History, OWN, actions};
use ikigai_testkit::{block_on, check_request, target};
use proptest::prelude::*;
use serde_json::json;

use super::{chosen, config, picks, restored, rows_of};

/// Returns a budget in which everything has room.
fn plenty() -> Budget {
    Budget::new(u64::MAX, None)
}

/// Returns three targets, with a tool and a pinned document.
///
/// The model of the payloads, another model of its provider, and another provider's model.
fn targets() -> [Target; 3] {
    let mut stranger = target("stranger", OWN.1);
    stranger.tools.push(ikigai_core::project::ToolSpec {
        name: "bash".to_owned(),
        description: "runs a command".to_owned(),
        parameters: json!({"type": "object"}),
        facts: ikigai_core::project::ToolFacts::default(),
    });
    stranger.documents = documents();
    [target(OWN.0, OWN.1), target(OWN.0, "two"), stranger]
}

/// Returns the texts of the files that histories pin.
fn documents() -> std::collections::BTreeMap<String, String> {
    [("h1", "be kind"), ("h2", "be brief")]
        .map(|(hash, text)| (hash.to_owned(), text.to_owned()))
        .into()
}

/// Returns a view of some rows.
fn view_of(rows: &[Row]) -> View {
    let mut view = View::default();
    view.prepend(rows.iter().rev().cloned().collect());
    view
}

proptest! {
    #![proptest_config(config())]

    /// N1d
    #[test]
    fn prop_any_prefix_projects_or_names_what_is_missing(
        actions in actions(30),
        picks in picks(3),
        small in 0..400_u64,
    ) {
        let history = History::of(&actions);
        for at in chosen(&history, &picks) {
            let agent = restored(&history, at);
            let answerable = history.oracle.can_be_answered(&history.oracle.path(at));
            let prompt = estimate_tokens(agent.state.system().unwrap_or_default());
            for target in targets() {
                for window in [u64::MAX, small, 0] {
                    let budget = Budget::new(window, None);
                    match project(&agent.state, &agent.view, &target, &budget) {
                        Ok(request) => {
                            prop_assert_eq!(check_request(&request, &target), Ok(()));
                            prop_assert!(answerable);
                        }
                        Err(CannotProject::NoUserMessage) => prop_assert!(!answerable),
                        Err(CannotProject::NoRoom { needed, largest, .. }) => {
                            let bare = target.tools.is_empty();
                            prop_assert!(needed > window);
                            prop_assert!(!bare || needed == prompt);
                            prop_assert!(largest.iter().any(|(_, tokens)| *tokens > 0));
                        }
                    }
                }
            }
        }
    }

    /// The reported window usage equals a recount of the request.
    ///
    /// The request fits whenever its last turn fits with its outputs cut.
    #[test]
    fn prop_totals_equal_a_recount_of_the_request(
        actions in actions(30),
        picks in picks(3),
        small in 0..400_u64,
    ) {
        let history = History::of(&actions);
        for at in chosen(&history, &picks) {
            let agent = restored(&history, at);
            for target in targets() {
                for window in [u64::MAX, small] {
                    let budget = Budget::new(window, None);
                    let filling = Filling::of(&agent.state, &agent.view, &target, &budget);
                    let Ok(request) = assemble(&agent.state, &agent.view, &target, &budget) else {
                        prop_assert!(filling.fixed_tokens() > window);
                        continue;
                    };
                    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
                    let recount: u64 = blocks.map(block_tokens).sum();
                    prop_assert_eq!(filling.turn_tokens(), recount);
                    prop_assert!(estimate_request(&request) <= filling.fixed_tokens() + recount);
                    let fits = filling.fixed_tokens().saturating_add(recount) <= window;
                    prop_assert!(fits || outputs_are_short(&request), "{:?}", request);
                    let summaries = filling.turns.iter().filter(|turn| turn.is_summary).count();
                    prop_assert!(summaries <= agent.state.summaries().len());
                }
            }
        }
    }

    /// E2a E2b: summaries replace their range, nest, can be undone, and follow the path.
    ///
    /// The oracle is a slow walk over the path.
    #[test]
    fn prop_summaries_nest_undo_and_follow_the_path(actions in actions(40), picks in picks(4)) {
        let history = History::of(&actions);
        let target = target(OWN.0, OWN.1);
        // Notes on interruptions and omissions are in brackets.
        let is_note = |text: &String| text.starts_with('[');
        for at in chosen(&history, &picks) {
            let agent = restored(&history, at);
            let request = assemble(&agent.state, &agent.view, &target, &plenty()).unwrap();
            let of_user = request.messages.iter().filter(|message| message.role == Role::User);
            let blocks = of_user.flat_map(|message| &message.blocks);
            let mut texts: Vec<_> = blocks
                .filter_map(|block| match block {
                    Block::Text { text } => Some(text.clone()),
                    _ => None,
                })
                .collect();
            texts.retain(|text| !is_note(text));
            let path = history.oracle.path(at);
            let omits = agent.view.entries().iter().any(|entry| {
                entry.kind() == Some(Kind::Error) && entry.row.data.as_deref().unwrap_or_default().contains("omit")
            });
            if omits {
                continue;
            }
            let mut expected = history.oracle.in_the_users_name(&path);
            expected.retain(|text| !is_note(text));
            prop_assert_eq!(texts, expected);
        }
    }

    /// N1d E2e: older rows than the ones that fill the budget do not change the request.
    #[test]
    fn prop_a_full_budget_needs_no_older_rows(
        actions in actions(30),
        picks in picks(3),
        window in 0..200_u64,
        step in 1..5_usize,
    ) {
        let history = History::of(&actions);
        let target = target(OWN.0, OWN.1);
        let budget = Budget::new(window, None);
        for at in chosen(&history, &picks) {
            let agent = restored(&history, at);
            let whole = project(&agent.state, &agent.view, &target, &budget);
            let rows = rows_of(&agent.view);
            for start in (0..rows.len()).rev().step_by(step) {
                let tail = view_of(&rows[start..]);
                if is_full(&agent.state, &tail, &target, &budget) {
                    let request = project(&agent.state, &tail, &target, &budget);
                    prop_assert_eq!(&request, &whole, "from {}", start);
                }
            }
        }
    }

    /// E5 E3b: a changed pin waits for a context row, so the system slot stays too.
    #[test]
    fn prop_requests_extend_their_predecessor(actions in actions(30)) {
        let history = History::of(&actions);
        let mut target = target(OWN.0, OWN.1);
        target.documents = documents();
        for head in history.heads() {
            let mut agent = Agent::new(head.agent);
            let mut sent: Option<(Sent, Request)> = None;
            for seq in 1..=head.seq.0 {
                let at = RowRef::new(head.agent, Seq(seq));
                let row = history.log.row(at);
                if may_break_off(&history, &row) {
                    sent = None;
                }
                block_on(agent.apply(&history.log.store, row)).unwrap();
                block_on(agent.read_all(&history.log.store)).unwrap();
                let Some((next, request)) = send(&history, &agent, &target, at) else {
                    continue;
                };
                if let Some((before, earlier)) = &sent
                    && !next.answers_what_was_open(before)
                {
                    let blocks = blocks_of(&request);
                    prop_assert!(blocks.starts_with(&blocks_of(earlier)), "{:?} {:?}", earlier, request);
                    prop_assert_eq!(&earlier.system, &request.system);
                }
                sent = Some((next, request));
            }
        }
    }

    /// S4-11 S4-14
    #[test]
    fn prop_metadata_rows_do_not_change_the_request(actions in actions(30), picks in picks(4)) {
        let history = History::of(&actions);
        let target = target(OWN.0, OWN.1);
        for at in chosen(&history, &picks) {
            let agent = restored(&history, at);
            let mut rows = rows_of(&agent.view);
            // A view without the first row would not be whole, nor a range without its ends.
            let mut kept: Vec<_> = agent.state.summaries().iter().flat_map(|(_, from, to)| [*from, *to]).collect();
            kept.extend(rows.first().map(|row| row.at));
            rows.retain(|row| kept.contains(&row.at) || !is_metadata(row));

            let request = project(&agent.state, &view_of(&rows), &target, &plenty());

            prop_assert_eq!(request, project(&agent.state, &agent.view, &target, &plenty()));
        }
    }
}

/// Returns true if no tool output can be cut further.
///
/// This is the case if only the last turn is left and it exceeds the window.
fn outputs_are_short(request: &Request) -> bool {
    let mut blocks = request.messages.iter().flat_map(|message| &message.blocks);
    blocks.all(|block| match block {
        Block::ToolResult { content, .. } => content.len() <= 640,
        _ => true,
    })
}

/// Answers of the calls at the time of a request; `None` for an open call.
struct Sent {
    answers: std::collections::HashMap<RowRef, Option<RowRef>>,
}

impl Sent {
    /// Returns true if a call that was open in an earlier request has a result now.
    ///
    /// The engine settles open calls before it sends, so that no result comes late.
    fn answers_what_was_open(&self, earlier: &Self) -> bool {
        let mut open = earlier.answers.iter().filter(|(_, by)| by.is_none());
        open.any(|(call, _)| matches!(self.answers.get(call), Some(Some(_))))
    }
}

/// Returns the request at a row; `None` while the last response has an open call.
fn send(history: &History, agent: &Agent, target: &Target, at: RowRef) -> Option<(Sent, Request)> {
    let path = history.oracle.path(at);
    if history.oracle.last_response_is_open(&path) {
        return None;
    }
    let request = project(&agent.state, &agent.view, target, &plenty()).ok()?;
    let answers = history.oracle.answers(&path);
    Some((Sent { answers }, request))
}

/// Returns true if a row may change the beginning of the next request.
///
/// These are all control rows except marks and pins for the next context row.
fn may_break_off(history: &History, row: &Row) -> bool {
    let command: CommandData = data::read(row.data.as_deref());
    let stays = row.kind.read_as() == Some(Kind::Mark) || command.later == Some(true);
    history.is_control(row.at) && !stays
}

fn blocks_of(request: &Request) -> Vec<(Role, &Block)> {
    let messages = request.messages.iter();
    messages
        .flat_map(|message| message.blocks.iter().map(|block| (message.role, block)))
        .collect()
}

fn is_metadata(row: &Row) -> bool {
    let data: serde_json::Value = row
        .data
        .as_deref()
        .and_then(|data| serde_json::from_str(data).ok())
        .unwrap_or_default();
    match row.kind.read_as() {
        Some(Kind::Mark | Kind::AgentKilled | Kind::Usage) => true,
        Some(Kind::Fork) => data["role"] == "parent",
        Some(Kind::Command) => !data["set"].is_object(),
        _ => false,
    }
}
