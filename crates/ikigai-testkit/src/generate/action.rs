//! Actions on a log of agents, one after the other.
//!
//! An index in an action is taken modulo the number of elements at that moment, so every sublist of
//! actions is valid, and a failing list can be shrunk.

use ikigai_core::data::{Cause, Via};
use proptest::collection::vec;
use proptest::option::{of as maybe, weighted};
use proptest::prelude::*;
use proptest::sample::select;

use super::bad_rows::{BadRow, BadTarget, bad_row, bad_target};
use super::text::{CallId, Hanging, Text, arguments, call_id, hanging, text, tool_name};

/// Action of one agent, or on it.
#[derive(Clone, Debug)]
pub struct Action {
    /// Agent of the action, counted back from the newest.
    pub agent: usize,
    /// The action itself.
    pub kind: ActionKind,
}

/// Form of a `summary` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextForm {
    /// A text, or nothing, in place of the range.
    Plain,
    /// The same, and the user's own messages of the range stay.
    Verbatim,
    /// Shorter tool outputs in the range.
    Elide,
    /// A note in place of the range, and the user's own messages stay.
    Cut,
}

fn context_form() -> impl Strategy<Value = ContextForm> {
    prop_oneof![
        Just(ContextForm::Plain),
        Just(ContextForm::Verbatim),
        Just(ContextForm::Elide),
        Just(ContextForm::Cut),
    ]
}

/// Type of action with its parameters.
#[derive(Clone, Debug)]
pub enum ActionKind {
    /// A message to the agent, idle or not.
    Say { text: Text, how: Saying },
    /// A response of the model, with results of some of its calls.
    Respond(GeneratedReply),
    /// One more block of the newest response.
    GoOn(ReplyBlock),
    /// A late or duplicate result, or one of another agent's call.
    Answer(LateResult),
    /// A stop.
    Interrupt(Cause),
    /// A failure; it may name rows to leave out.
    Fail {
        text: Text,
        omit: Option<Vec<HeldRow>>,
    },
    /// A mark; labels repeat.
    Mark(Option<&'static str>),
    /// A rewind to a row that the agent holds.
    Rewind { to: HeldRow, via: Via },
    /// A rewind that names no row that the agent holds.
    BadRewind { target: BadTarget, via: Via },
    /// A clear, mostly with a system prompt.
    Clear { system: Option<Text> },
    /// A system prompt.
    System(Text),
    /// A command.
    Command {
        set: Option<&'static str>,
        echo: Option<Text>,
        resume: bool,
        output: Option<Text>,
    },
    /// Pins that the prefix takes at the next context row, by the hash of their file.
    PinLater(&'static str),
    /// A kill of some agents.
    Kill { target: usize, all: bool },
    /// Usage of a response.
    Usage(u64),
    /// A summary, or a gap, in place of a range.
    Summarise {
        from: HeldRow,
        to: HeldRow,
        text: Option<Text>,
        form: ContextForm,
    },
    /// A summary, or a gap, in place of all turns before one of the newest.
    Compact { keep: usize, text: Option<Text> },
    /// Undo of a summary.
    TakeBack { which: usize, names_range: bool },
    /// A child.
    Fork(Forking),
    /// A row that no program of this version writes.
    Bad(BadRow),
    /// A snapshot of the agent.
    Snapshot,
    /// A takeover of the agent by a new process.
    Restart,
    /// A read of this many older rows.
    LookBack(usize),
    /// A drop of all but this many rows from memory.
    Forget(usize),
}

/// Origin of a message to an agent.
#[derive(Clone, Copy, Debug)]
pub enum Saying {
    /// Typed.
    Typed,
    /// Typed, with a different display text.
    Expanded,
    /// Mail of another agent.
    Mail,
    /// Output of a shell line.
    Shell,
    /// Result of a child.
    Merge,
}

/// A row that an agent holds.
#[derive(Clone, Copy, Debug)]
pub enum HeldRow {
    /// On its path, counted back from the newest.
    OnPath(usize),
    /// Its own, on an abandoned branch.
    Abandoned(usize),
    /// Inherited, on its path or not.
    Inherited(usize),
    /// A mark.
    Mark(usize),
    /// A row in the middle of a response.
    InResponse(usize),
    /// Any.
    Any(usize),
}

/// A response.
#[derive(Clone, Debug)]
pub struct GeneratedReply {
    /// Its blocks, in order.
    pub pieces: Vec<ReplyBlock>,
    /// True if its rows have its number; older ones do not.
    pub numbered: bool,
    /// Calls that get results, in order: each index is taken modulo the calls left.
    pub answers: Vec<usize>,
    /// Message between the results.
    pub queued: Option<Text>,
}

/// A block of a response.
#[derive(Clone, Debug)]
pub enum ReplyBlock {
    /// Text, perhaps empty.
    Text { text: Text, hanging: Hanging },
    /// A call.
    Call {
        id: CallId,
        name: &'static str,
        arguments: &'static str,
        hanging: Hanging,
    },
}

/// A result that is not part of a [`GeneratedReply`].
#[derive(Clone, Debug)]
pub struct LateResult {
    /// Call of any agent, counted back from the newest; none is an orphan.
    pub call: Option<usize>,
    /// True if the row names the call's row; older ones do not.
    pub by_row: bool,
    /// Output of the tool.
    pub output: Text,
    /// True if the tool succeeded.
    pub success: Option<bool>,
}

/// A fork.
#[derive(Clone, Debug)]
pub struct Forking {
    /// The last row inherited, if not the newest.
    pub at: Option<HeldRow>,
    /// True if the child inherits nothing.
    pub fresh: bool,
    /// The call that made the fork, counted back from the newest.
    pub call: Option<usize>,
    /// First message to the child.
    pub prompt: Option<Text>,
    /// Settings that differ from the parent's.
    pub set: Option<&'static str>,
}

/// Settings of commands: new values, resets, and invalid values.
const SETTINGS: [&str; 13] = [
    r#"{"model":{"provider":"demo","model":"one","level":"high"}}"#,
    r#"{"model":{"provider":"other","model":"one"}}"#,
    r#"{"model":null}"#,
    r#"{"model":7,"name":"x"}"#,
    r#"{"workdir":"/a\u0000b"}"#,
    r#"{"toolset":["bash"],"approve":"ask"}"#,
    r#"{"approve":"whatever"}"#,
    r#"{"pins":[{"path":"AGENTS.md","hash":"h1"},{"path":"x"}]}"#,
    r#"{"pins":null}"#,
    r#"{"rules":[{"tool":"bash","pattern":"ls *"}],"budget_tokens":5000}"#,
    r#"{"budget_tokens":-1,"unknown":{}}"#,
    r#"{"spend":{"usd":0.30000000000000004,"tokens":18446744073709551615}}"#,
    r#"{"spend":{"usd":123456789.12345678901e-7}}"#,
];

/// Generates actions, with more of them on the newest agent, so that histories become deep.
pub fn action() -> BoxedStrategy<Action> {
    let agent = prop_oneof![2 => Just(0), 3 => 0..8_usize];
    let actions = (agent, kind()).prop_map(|(agent, kind)| Action { agent, kind });
    actions.boxed()
}

/// Generates lists of at most `most` actions.
pub fn actions(most: usize) -> BoxedStrategy<Vec<Action>> {
    vec(action(), 0..=most).boxed()
}

// Strategies are boxed where they join: the values of nested ones are large enough to exhaust the
// stack of a test.
fn kind() -> impl Strategy<Value = ActionKind> {
    let settings = || select(&SETTINGS[..]);
    let label = select(&[None, Some("a"), Some("b"), Some(""), Some("\0")][..]);
    let conversation = prop_oneof![
        14 => (text(), saying()).prop_map(|(text, how)| ActionKind::Say { text, how }),
        16 => reply().prop_map(ActionKind::Respond),
        2 => piece().prop_map(ActionKind::GoOn),
        4 => answer().prop_map(ActionKind::Answer),
        4 => cause().prop_map(ActionKind::Interrupt),
        3 => (text(), weighted(0.5, vec(place(), 0..3)))
            .prop_map(|(text, omit)| ActionKind::Fail { text, omit }),
    ]
    .boxed();
    let path = prop_oneof![
        4 => label.prop_map(ActionKind::Mark),
        9 => (place(), via()).prop_map(|(to, via)| ActionKind::Rewind { to, via }),
        2 => (bad_target(), via()).prop_map(|(target, via)| ActionKind::BadRewind { target, via }),
        2 => weighted(0.8, text()).prop_map(|system| ActionKind::Clear { system }),
        2 => text().prop_map(ActionKind::System),
        6 => (place(), place(), maybe(text()), context_form())
            .prop_map(|(from, to, text, form)| ActionKind::Summarise { from, to, text, form }),
        2 => (0..4_usize, maybe(text())).prop_map(|(keep, text)| ActionKind::Compact { keep, text }),
        2 => (0..4_usize, any::<bool>())
            .prop_map(|(which, names_range)| ActionKind::TakeBack { which, names_range }),
        8 => forking(settings()).prop_map(ActionKind::Fork),
    ]
    .boxed();
    let beside = prop_oneof![
        4 => (maybe(settings()), maybe(text()), weighted(0.2, Just(())), maybe(text())).prop_map(
            |(set, echo, resume, output)| ActionKind::Command {
                set,
                echo,
                resume: resume.is_some(),
                output
            }
        ),
        3 => select(&["h1", "h2"][..]).prop_map(ActionKind::PinLater),
        1 => (0..8_usize, any::<bool>()).prop_map(|(target, all)| ActionKind::Kill { target, all }),
        2 => prop_oneof![0..100_u64, Just(u64::MAX)].prop_map(ActionKind::Usage),
        6 => bad_row().prop_map(ActionKind::Bad),
        2 => Just(ActionKind::Snapshot),
        1 => Just(ActionKind::Restart),
        1 => (1..9_usize).prop_map(ActionKind::LookBack),
        1 => (0..6_usize).prop_map(ActionKind::Forget),
    ]
    .boxed();
    prop_oneof![45 => conversation, 32 => path, 19 => beside]
}

fn saying() -> impl Strategy<Value = Saying> {
    prop_oneof![
        8 => Just(Saying::Typed),
        1 => Just(Saying::Expanded),
        1 => Just(Saying::Mail),
        1 => Just(Saying::Shell),
        1 => Just(Saying::Merge),
    ]
}

fn cause() -> impl Strategy<Value = Cause> {
    select(&[Cause::User, Cause::Exit, Cause::Crash, Cause::Kill][..])
}

fn via() -> impl Strategy<Value = Via> {
    select(&[Via::Rewind, Via::Undo, Via::Redo, Via::Retry][..])
}

fn place() -> BoxedStrategy<HeldRow> {
    let index = || 0..40_usize;
    prop_oneof![
        3 => index().prop_map(HeldRow::OnPath),
        3 => index().prop_map(HeldRow::Abandoned),
        2 => index().prop_map(HeldRow::Inherited),
        1 => index().prop_map(HeldRow::Mark),
        2 => index().prop_map(HeldRow::InResponse),
        1 => index().prop_map(HeldRow::Any),
    ]
    .boxed()
}

fn reply() -> BoxedStrategy<GeneratedReply> {
    let queued = weighted(0.15, text());
    (
        vec(piece(), 1..5),
        weighted(0.1, Just(())),
        vec(0..4_usize, 0..5),
        queued,
    )
        .prop_map(|(pieces, older, answers, queued)| GeneratedReply {
            pieces,
            numbered: older.is_none(),
            answers,
            queued,
        })
        .boxed()
}

fn piece() -> BoxedStrategy<ReplyBlock> {
    prop_oneof![
        (text(), hanging()).prop_map(|(text, hanging)| ReplyBlock::Text { text, hanging }),
        (call_id(), tool_name(), arguments(), hanging()).prop_map(
            |(id, name, arguments, hanging)| ReplyBlock::Call {
                id,
                name,
                arguments,
                hanging
            }
        ),
    ]
    .boxed()
}

fn answer() -> BoxedStrategy<LateResult> {
    (
        weighted(0.85, 0..12_usize),
        any::<bool>(),
        text(),
        maybe(any::<bool>()),
    )
        .prop_map(|(call, by_row, output, success)| LateResult {
            call,
            by_row,
            output,
            success,
        })
        .boxed()
}

fn forking(set: impl Strategy<Value = &'static str> + 'static) -> BoxedStrategy<Forking> {
    (
        weighted(0.7, place()),
        weighted(0.15, Just(())),
        maybe(0..4_usize),
        maybe(text()),
        maybe(set),
    )
        .prop_map(|(at, fresh, call, prompt, set)| Forking {
            at,
            fresh: fresh.is_some(),
            call,
            prompt,
            set,
        })
        .boxed()
}
