//! Status of the program for the terminal, which may show it beside its windows.

use ikigai_core::counts::counted;
use ikigai_engine::InboxKind;

use super::App;
use super::inbox::waiting;

/// Status of the program as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramStatus {
    /// Word of the protocol.
    pub state: &'static str,
    /// Reason of a wait for the user.
    pub kind: Option<&'static str>,
    /// Counts for people, without words of users or models.
    pub text: String,
}

impl App {
    /// Returns the status of the program: what waits for the user comes first.
    pub fn program_status(&self) -> ProgramStatus {
        let waiting = waiting(&self.ctx);
        let count = |is_one: fn(InboxKind) -> bool| {
            let kinds = waiting.iter().map(|item| item.kind);
            kinds.filter(|kind| is_one(*kind)).count()
        };
        let questions = count(|kind| kind == InboxKind::Question);
        let reports = count(|kind| kind == InboxKind::Report);
        let failures = waiting.len() - questions - reports;
        let working = self.ctx.roster.working();
        let (state, text) = if questions > 0 {
            ("blocked", counted(questions, "question"))
        } else if working > 0 {
            ("working", format!("{} working", counted(working, "agent")))
        } else if failures > 0 {
            ("error", counted(failures, "failure"))
        } else if reports > 0 {
            ("done", counted(reports, "report"))
        } else {
            ("idle", String::new())
        };
        ProgramStatus {
            state,
            kind: (questions > 0).then_some("permission"),
            text,
        }
    }
}
