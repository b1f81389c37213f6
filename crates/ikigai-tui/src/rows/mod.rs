//! Rendering of each kind of event, the same live and replayed.
//!
//! All external text goes through [`crate::text::clean`].

mod command;
mod diff;
mod figures;
mod folded_text;
mod shell;
mod speech;
#[cfg(test)]
mod tests;
mod tools;

use ikigai_core::counts::counted;
use ikigai_core::data::{Category, Cause, Merge, RewindData, Via};
use ikigai_core::render::{Names, Said, Shown, fork_text, process_ended};
use ikigai_core::{AgentId, RowRef};

pub use diff::diff;
pub use figures::{TurnSummary, bytes, duration, turn_line};
pub use speech::speech;

use crate::line::{TextLine, TextSpan};
use crate::look::{Look, Tone};
use crate::signs::{Sign, Symbols};
use crate::text::{clean, clean_line};
use folded_text::{FoldedPart, Lead, MOST_ROWS, add_cut, add_folded, add_line};

/// Fewest columns at which a tool takes more than one row.
pub const NARROW: u16 = 60;

/// Rows of a folded message or command output.
const LONG: usize = 40;

/// Width, symbols and names for rendering.
#[derive(Clone, Copy)]
pub struct RenderContext<'a> {
    /// Columns.
    pub width: u16,
    /// Character set of symbols.
    pub symbols: Symbols,
    /// Names of agents and rows.
    pub names: Names<'a>,
}

impl RenderContext<'_> {
    fn sign(&self, sign: Sign) -> &'static str {
        sign.text(self.symbols)
    }

    fn lead(&self, sign: Sign, look: impl Into<Look>) -> Lead {
        Lead::sign(self.sign(sign), look)
    }

    fn is_narrow(&self) -> bool {
        self.width < NARROW
    }

    fn name(&self, agent: AgentId) -> String {
        clean_line(&self.names.agent(agent)).into_owned()
    }

    /// `#12`, or `#docs.12` if it is another agent's row.
    fn row(&self, row: RowRef) -> String {
        clean_line(&self.names.row(row)).into_owned()
    }
}

/// State of an event: folded or open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FoldState {
    /// First rows, or first words.
    #[default]
    Folded,
    /// All of it.
    Open,
}

impl FoldState {
    fn most(self, folded: usize) -> usize {
        match self {
            Self::Folded => folded,
            Self::Open => MOST_ROWS,
        }
    }
}

/// An event as rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenderedBlock {
    /// Its rows; none if it draws nothing.
    pub lines: Vec<TextLine>,
    /// Approximate number of rows to unfold.
    pub folded: Option<usize>,
}

impl RenderedBlock {
    fn of(lines: Vec<TextLine>, hidden: FoldedPart) -> Self {
        Self {
            lines,
            folded: (!hidden.is_nothing()).then_some(hidden.lines.max(1)),
        }
    }
}

/// Renders an event. Total.
pub fn block(shown: &Shown, fold: FoldState, context: &RenderContext<'_>) -> RenderedBlock {
    match shown {
        // The cost of a response follows the turn.
        Shown::Nothing | Shown::Usage(_) => RenderedBlock::default(),
        Shown::System(text) => system(text, fold, context),
        Shown::User { text, sent, said } => user(text, sent.as_deref(), said, fold, context),
        Shown::Assistant { thinking, text } => speech::assistant(thinking, text, fold, context),
        Shown::ToolCall {
            thinking,
            name,
            text,
            arguments,
        } => {
            let mut block = speech::thought(thinking, fold, context);
            let call = tools::call(name, text, arguments, fold, context);
            block.lines.extend(call.lines);
            block.folded = block.folded.max(call.folded);
            block
        }
        Shown::ToolResult {
            name,
            text,
            output,
            success,
            call: _,
        } => tools::result(name, text, output, *success, fold, context),
        Shown::Cleared => hinted_rule(
            "cleared",
            ": settings and pinned files kept",
            "/undo to restore",
            context,
        ),
        Shown::Mark(label) => {
            let label = label.as_deref().unwrap_or_default();
            with_sign(Sign::Mark, Tone::Agent, label, Tone::Text, fold, context)
        }
        Shown::Rewound(data) => rewound(data, context),
        Shown::Forked {
            text, role, name, ..
        } => {
            let line = fork_text(text, *role, name.as_deref());
            with_sign(Sign::Forked, Tone::Agent, &line, Tone::Agent, fold, context)
        }
        Shown::Command {
            echo,
            output,
            severity,
        } => command::command(echo, output, *severity, fold, context),
        Shown::Killed(killed) => {
            let names: Vec<_> = killed.iter().map(|agent| context.name(*agent)).collect();
            let line = format!("killed {}", names.join(", "));
            with_sign(Sign::Failed, Tone::Error, &line, Tone::Text, fold, context)
        }
        Shown::Interrupted(cause) => interrupted_block(*cause, context),
        Shown::Failed {
            category,
            status,
            text,
        } => failed_block(*category, *status, text, fold, context),
        Shown::Summary {
            elides: true,
            undo: None,
            range,
            ..
        } => {
            let up_to = up_to(*range, context);
            hinted_rule(
                "old tool output",
                &format!("{up_to} shortened"),
                "/context undo",
                context,
            )
        }
        Shown::Summary {
            range, text, undo, ..
        } => summary(*range, text.as_deref(), *undo, fold, context),
        Shown::ProcessEnded { command, data } => {
            let line = format!("{}: {command}", process_ended(data));
            with_sign(Sign::Process, Tone::Agent, &line, Tone::Text, fold, context)
        }
        Shown::Warning(text) => with_sign(
            Sign::Warning,
            Tone::Warning,
            text,
            Tone::Text,
            fold,
            context,
        ),
    }
}

/// Renders a text with a sign.
fn with_sign(
    sign: Sign,
    look: Tone,
    text: &str,
    text_look: Tone,
    fold: FoldState,
    context: &RenderContext<'_>,
) -> RenderedBlock {
    let mut lines = Vec::new();
    let lead = context.lead(sign, look);
    let hidden = add_folded(&mut lines, text, text_look, &lead, context, fold.most(LONG));
    if lines.is_empty() {
        add_line(&mut lines, Vec::new(), &lead, context, 1);
    }
    RenderedBlock::of(lines, hidden)
}

fn rule(word: &str, context: &RenderContext<'_>) -> RenderedBlock {
    let dash = context.sign(Sign::Rule);
    let line = TextLine::of(format!("{dash} {word} {dash}"), Tone::Rule);
    RenderedBlock {
        lines: vec![crate::text::cut(&line, context.width, "")],
        folded: None,
    }
}

fn system(text: &str, fold: FoldState, context: &RenderContext<'_>) -> RenderedBlock {
    if text.trim().is_empty() {
        return RenderedBlock::default();
    }
    let mut lines = Vec::new();
    let text = format!("system: {}", text.trim());
    let lead = Lead {
        first: Vec::new(),
        ..Lead::space(2)
    };
    if fold == FoldState::Open {
        add_folded(&mut lines, &text, Tone::Faint, &lead, context, MOST_ROWS);
        return RenderedBlock {
            lines,
            folded: None,
        };
    }
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let near = first.get(..first.floor_char_boundary(tools::MOST_LINE_BYTES));
    let spans = vec![TextSpan::new(clean(near.unwrap_or_default()), Tone::Faint)];
    let is_cut = add_cut(&mut lines, spans, &lead, context, 1);
    RenderedBlock::of(lines, FoldedPart::of(if is_cut { &text } else { rest }))
}

fn user(
    text: &str,
    sent: Option<&str>,
    said: &Said,
    fold: FoldState,
    context: &RenderContext<'_>,
) -> RenderedBlock {
    let more = sent.map_or_else(FoldedPart::default, FoldedPart::of);
    let mut block = match said {
        Said::Notice(_) => with_sign(Sign::Process, Tone::Agent, text, Tone::Text, fold, context),
        Said::Typed | Said::Fork => {
            with_sign(Sign::User, Tone::User, text, Tone::User, fold, context)
        }
        Said::Mail(from) => {
            let sign = Sign::Mail.text(Symbols::Utf8);
            let text = match (text.strip_prefix(sign), from) {
                (Some(line), _) => line.trim_start().to_owned(),
                (None, Some(from)) => format!("{}: {text}", context.name(*from)),
                (None, None) => text.to_owned(),
            };
            with_sign(Sign::Mail, Tone::Agent, &text, Tone::Text, fold, context)
        }
        Said::Shell(data) => return shell::shell_block(text, data, fold, context),
        Said::Merge(merge) => {
            let line = merge_text(text, merge, context);
            with_sign(Sign::Merged, Tone::Agent, &line, Tone::Agent, fold, context)
        }
    };
    // Text that the model received in addition to the typed one: files, or a child's work.
    if let (Some(sent), false) = (sent, matches!(said, Said::Mail(_) | Said::Notice(_))) {
        match fold {
            FoldState::Folded => block.folded = block.folded.max(Some(more.lines.max(1))),
            FoldState::Open => {
                let lead = Lead::space(2);
                add_folded(
                    &mut block.lines,
                    sent,
                    Tone::Faint,
                    &lead,
                    context,
                    MOST_ROWS,
                );
            }
        }
    }
    block
}

fn merge_text(text: &str, merge: &Merge, context: &RenderContext<'_>) -> String {
    if let (Some(agent), Some(from), Some(to)) = (merge.agent, merge.from, merge.to) {
        let to_sign = context.sign(Sign::To);
        return format!("merged {} #{from}{to_sign}#{to}", context.name(agent));
    }
    let line = text.strip_prefix(Sign::Merged.text(Symbols::Utf8));
    format!("merged {}", line.unwrap_or(text).trim_start())
}

fn rewound(data: &RewindData, context: &RenderContext<'_>) -> RenderedBlock {
    let dot = context.sign(Sign::Dot);
    let mut spans = vec![TextSpan::new(rewind_text(data, context), Tone::Agent)];
    let lists = [
        (&data.restored, "files restored", Tone::Agent),
        (&data.files, "files keep their changes", Tone::Warning),
    ];
    for (files, what, tone) in lists {
        if let Some(files) = files.as_deref().filter(|files| !files.is_empty()) {
            let named: Vec<_> = files.iter().take(8).map(|file| clean_line(file)).collect();
            let more = match files.len().saturating_sub(named.len()) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let files = named.join(", ");
            spans.push(TextSpan::new(format!(" {dot} {what}: {files}{more}"), tone));
        }
    }
    let mut lines = Vec::new();
    let sign = match data.via {
        Some(Via::Redo) => Sign::Redone,
        _ => Sign::Rewound,
    };
    let lead = context.lead(sign, Tone::Agent);
    add_line(&mut lines, spans, &lead, context, LONG);
    RenderedBlock {
        lines,
        folded: None,
    }
}

/// Rows that a rewind left: `3 turns hidden (#41–#58)`.
fn rewind_text(data: &RewindData, context: &RenderContext<'_>) -> String {
    let (Some(target), Some(from)) = (data.target, data.from) else {
        return "rewound".to_owned();
    };
    if data.via == Some(Via::Redo) {
        return format!("redone to {}", context.row(target));
    }
    let to = context.sign(Sign::To);
    let first = RowRef::new(target.agent, target.seq.next());
    let range = match (target.agent == from.agent, first == from) {
        (true, false) => format!("{}{to}{}", context.row(first), context.row(from)),
        (true, true) => context.row(from),
        (false, _) => format!("up to {}", context.row(from)),
    };
    match data.turns {
        None | Some(0) => format!("{range} hidden"),
        Some(turns) => format!("{} hidden ({range})", counted(turns, "turn")),
    }
}

/// Renders the output of a command that reports an event, in the place of the event.
pub fn report(shown: &Shown, fold: FoldState, context: &RenderContext<'_>) -> RenderedBlock {
    let Shown::Command { output, .. } = shown else {
        return block(shown, fold, context);
    };
    let mut lines = Vec::new();
    let lead = Lead::space(0);
    let most = fold.most(LONG);
    let hidden = add_folded(&mut lines, output, Tone::Agent, &lead, context, most);
    RenderedBlock::of(lines, hidden)
}

/// Renders the later output of a command whose own row shows the typed line.
pub fn late_output(shown: &Shown, fold: FoldState, context: &RenderContext<'_>) -> RenderedBlock {
    match shown {
        Shown::Command {
            output, severity, ..
        } => command::command("", output, *severity, fold, context),
        other => block(other, fold, context),
    }
}

fn interrupted_block(cause: Option<Cause>, context: &RenderContext<'_>) -> RenderedBlock {
    let sent = Shown::Interrupted(cause).to_string();
    let sent = sent
        .trim_start_matches(Sign::Failed.text(Symbols::Utf8))
        .trim();
    let mut spans = vec![TextSpan::new(sent, Tone::Text)];
    // A killed agent cannot continue.
    if cause != Some(Cause::Kill) {
        let dot = context.sign(Sign::Dot);
        spans.push(TextSpan::new(
            format!(" {dot} /resume to continue"),
            Tone::Faint,
        ));
    }
    let mut lines = Vec::new();
    let lead = context.lead(Sign::Failed, Tone::Error);
    add_line(&mut lines, spans, &lead, context, LONG);
    RenderedBlock {
        lines,
        folded: None,
    }
}

/// Renders an error: the provider's message, and possible remedies.
fn failed_block(
    category: Option<Category>,
    status: Option<u16>,
    text: &str,
    fold: FoldState,
    context: &RenderContext<'_>,
) -> RenderedBlock {
    if category == Some(Category::Omitted) {
        let text = format!("refused by the provider, not sent any more: {text}");
        return with_sign(
            Sign::Warning,
            Tone::Warning,
            &text,
            Tone::Text,
            fold,
            context,
        );
    }
    let mut block = with_sign(Sign::Failed, Tone::Error, text, Tone::Error, fold, context);
    let dot = context.sign(Sign::Dot);
    let advice = match (category, status) {
        (Some(Category::Provider), Some(401 | 403)) => {
            format!("/key PROVIDER to set a key {dot} /model to change the model {dot} then /retry")
        }
        // The text names the remedy.
        (Some(Category::Budget), _) => return block,
        (Some(Category::Limit), _) => "/resume to continue".to_owned(),
        _ => format!("/retry to send it again {dot} /model to change the model"),
    };
    let lead = context.lead(Sign::Failed, Tone::Error).below();
    let spans = vec![TextSpan::new(advice, Tone::Faint)];
    add_line(&mut block.lines, spans, &lead, context, 3);
    block
}

/// Renders the line above which rows are not sent. It is `── context ──`, then the reason if it
/// fits.
pub fn context_start(by: RowRef, replaced: Replaced, context: &RenderContext<'_>) -> RenderedBlock {
    let by = context.row(by);
    let (reason, hint) = match replaced {
        Replaced::BySummary => (format!("replaced by summary {by}"), "/compact --show"),
        Replaced::ByCut => (format!("left out by {by}"), "/context undo"),
    };
    let dash = context.sign(Sign::Rule);
    hinted_rule(
        "context",
        &format!(" {dash} above: {reason}"),
        hint,
        context,
    )
}

/// Replacement of the rows above the start of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// The text of a summary.
    BySummary,
    /// A note, or nothing.
    ByCut,
}

/// ` up to #12`, if the range is known.
fn up_to(range: Option<(RowRef, RowRef)>, context: &RenderContext<'_>) -> String {
    range.map_or_else(String::new, |(_, to)| format!(" up to {}", context.row(to)))
}

/// Renders a rule with a reason and a hint. Each is dropped if it does not fit.
fn hinted_rule(word: &str, reason: &str, hint: &str, context: &RenderContext<'_>) -> RenderedBlock {
    let dot = context.sign(Sign::Dot);
    let dashes = 2 * (crate::width::width(context.sign(Sign::Rule)) + 1);
    let texts = [
        format!("{word}{reason} {dot} {hint}"),
        format!("{word}{reason}"),
    ];
    let fits = |text: &&String| crate::width::width(text) + dashes <= usize::from(context.width);
    rule(
        texts.iter().find(fits).map_or(word, String::as_str),
        context,
    )
}

fn summary(
    range: Option<(RowRef, RowRef)>,
    text: Option<&str>,
    undo: Option<RowRef>,
    fold: FoldState,
    context: &RenderContext<'_>,
) -> RenderedBlock {
    if undo.is_some() {
        return rule("summary undone", context);
    }
    let Some(text) = text else {
        let up_to = up_to(range, context);
        return hinted_rule(
            "context full",
            &format!(": events{up_to} left out"),
            "/context undo",
            context,
        );
    };
    let of = range.map_or_else(String::new, |(from, to)| {
        format!(" of {} to {}", context.row(from), context.row(to))
    });
    let mut block = rule(&format!("summary{of}"), context);
    match fold {
        FoldState::Folded => block.folded = Some(FoldedPart::of(text).lines.max(1)),
        FoldState::Open => {
            let lead = Lead::space(2);
            add_folded(
                &mut block.lines,
                text,
                Tone::Faint,
                &lead,
                context,
                MOST_ROWS,
            );
        }
    }
    block
}
