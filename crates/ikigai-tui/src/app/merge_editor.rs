//! Preview of merging children into their parent; the user can edit the text first.

use std::collections::VecDeque;

use ikigai_core::AgentId;
use ikigai_engine::{AgentJob, Live, MergePreview, UserRequest};

use super::board::Board;
use super::hints::Hints;
use super::layer::{Area, Handled, Layer};
use super::{App, EngineRequest, TerminalAction, UiContext};
use crate::input::Editor;
use crate::key::{KeyCode, KeyPress, MouseEvent};
use crate::keys::{self, Action, Meaning};
use crate::line::{TextLine, TextSpan};
use crate::look::{Look, Tone};
use crate::paint::Grid;
use crate::text::{clean, cut, wrap};

/// Most rows of facts about a child.
const FACT_ROWS: usize = 3;

/// Keys of a preview.
const KEYS: Hints<'_> = Hints {
    gap: " ",
    keys: &["Enter merge", "Ctrl-G edit", "Alt-Enter newline"],
    way_out: "Esc cancel",
    look: Look::of(Tone::Status),
};

impl App {
    /// Shows the preview of merges into an agent.
    pub fn preview_merge(&mut self, into: AgentId, previews: Vec<MergePreview>) {
        let Some(preview) = MergeEditor::new(into, previews) else {
            return;
        };
        // A toast would hide the keys.
        self.ctx.toast = None;
        let returns_to_board = self.is_open::<Board>();
        if !returns_to_board {
            self.stack.clear();
        }
        self.question.wait();
        self.stack.push(Box::new(preview));
    }
}

/// Previews of merges into one agent, shown one after the other.
pub(super) struct MergeEditor {
    /// The parent.
    into: AgentId,
    /// Current preview, and the following ones.
    previews: VecDeque<MergePreview>,
    /// Number of all previews.
    count: usize,
    /// Text of the first preview.
    editor: Editor,
}

impl MergeEditor {
    /// Shows previews; none if the list is empty.
    pub(super) fn new(into: AgentId, previews: Vec<MergePreview>) -> Option<Self> {
        let previews = VecDeque::from(previews);
        Some(Self {
            into,
            count: previews.len(),
            editor: editor_of(previews.front()?),
            previews,
        })
    }

    /// Replaces the text.
    pub(super) fn set_text(&mut self, text: &str) {
        self.editor.set(text);
    }

    /// Merges the first preview, and shows the next.
    fn merge(&mut self, ctx: &mut UiContext) {
        let text = self.editor.text();
        if text.trim().is_empty() {
            return ctx.toast("The text is empty. Esc to cancel");
        }
        let Some(preview) = self.previews.pop_front() else {
            return ctx.close();
        };
        match self.previews.front() {
            Some(next) => self.editor = editor_of(next),
            None => ctx.close(),
        }
        if ctx.roster.live(self.into).is_some_and(Live::is_busy) {
            let name = ctx.name_of(self.into).unwrap_or_default();
            ctx.toast(format!("Will be merged when {name} finishes its turn"));
        }
        let merge = AgentJob::Merge(Box::new(preview), text);
        ctx.effects
            .push(EngineRequest::Send(self.into, UserRequest::Do(merge)));
    }

    fn cancel(&self, ctx: &mut UiContext) {
        let (merged, count) = (self.count - self.previews.len(), self.count);
        ctx.close();
        ctx.toast(match merged {
            0 => "Cancelled. Nothing merged".to_owned(),
            merged => format!("Cancelled. {merged} of {count} merged"),
        });
    }
}

fn editor_of(preview: &MergePreview) -> Editor {
    let mut editor = Editor::default();
    editor.set(&preview.text);
    editor.move_to(0);
    editor
}

impl Layer for MergeEditor {
    fn bindings(&self, _ctx: &UiContext) -> Vec<keys::KeyMode> {
        Vec::new()
    }

    fn key(&mut self, key: KeyPress, ctx: &mut UiContext) -> Handled {
        ctx.typed_at = Some(ctx.now);
        let editor = &mut self.editor;
        let meaning = ctx.bindings.meaning(&[keys::KeyMode::Input], &[key]);
        match (meaning, key.code) {
            (Meaning::Action(Action::Send), _) if editor.ends_with_backslash() => {
                editor.continue_line();
            }
            (Meaning::Action(Action::Send), _) => self.merge(ctx),
            (Meaning::Action(Action::Escape | Action::Interrupt), _) => self.cancel(ctx),
            (Meaning::Action(Action::Editor), _) => {
                ctx.effects.push(TerminalAction::Edit(editor.text()));
            }
            (Meaning::Action(Action::Edit(edit)), _) => {
                editor.apply(edit);
            }
            (Meaning::Nothing, KeyCode::Char(character)) if !key.ctrl && !key.alt => {
                editor.insert(character.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
        Handled::Yes
    }

    fn paste(&mut self, text: &str, ctx: &mut UiContext) -> Handled {
        if !self.editor.insert(text) {
            ctx.warn("text too large");
        }
        Handled::Yes
    }

    fn mouse(&mut self, _mouse: MouseEvent, _ctx: &mut UiContext) -> Handled {
        Handled::Yes
    }

    fn covers_input(&self) -> bool {
        true
    }

    fn draw(&mut self, area: Area, ctx: &mut UiContext, grid: &mut Grid) -> Area {
        let (columns, bottom) = (area.columns, area.bottom() - 1);
        let Some(preview) = self.previews.front() else {
            return area;
        };
        let parent = ctx.roster.get(self.into);
        let parent = parent.map_or("", |known| known.branch.agent.name.as_str());
        let place = self.count - self.previews.len() + 1;
        let place = match self.count {
            1 => String::new(),
            count => format!(" · {place} of {count}"),
        };
        let title = TextLine::new(vec![
            TextSpan::new(
                clean(&format!("Merge {} ", preview.range())),
                Look::of(Tone::Agent).with(Look::BOLD),
            ),
            TextSpan::new(format!("into {}{place}", clean(parent)), Tone::Text),
        ]);
        grid.line(0, 0, &cut(&title, columns, "…"));
        let facts = preview.facts();
        let facts = wrap(&TextLine::of(clean(&facts), Tone::Faint), columns, &[]);
        let mut row = 1;
        let most = if ctx.rows < 15 { 1 } else { FACT_ROWS };
        for line in facts.iter().take(most) {
            grid.line(row, 0, line);
            row += 1;
        }
        row += u16::from(ctx.rows >= 15);
        let room = bottom.saturating_sub(row).max(1);
        let layout = self.editor.layout(columns - 2, room);
        for (row, line) in (row..bottom).zip(&layout.rows) {
            grid.line(row, 1, line);
        }
        let cursor = (
            row + u16::try_from(layout.cursor.0).unwrap_or(0),
            1 + u16::try_from(layout.cursor.1).unwrap_or(0),
        );
        grid.cursor = Some((cursor.0.min(bottom), cursor.1.min(columns - 1)));
        let line = match &ctx.toast {
            Some(toast) => cut(&toast.line(" ", ctx.options.symbols), columns, "…"),
            None => KEYS.after(&TextLine::default(), columns),
        };
        grid.line(bottom, 0, &line);
        area.above(area.row)
    }
}
