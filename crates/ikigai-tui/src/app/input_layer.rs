//! The input: typing, sending, the ladders of Esc and Ctrl-C, going from agent to agent.

use ikigai_core::settings::Approve;
use ikigai_engine::{AgentJob, Answer, Phase, UserInput, UserRequest, looks_like_key};

use super::board::Board;
use super::browse::Browse;
use super::context::TOAST;
use super::inbox::InboxLayer;
use super::layer::{Area, Handled, Layer, LayerChange};
use super::overlay::help;
use super::second_press::{AGAIN, Again};
use super::typing::{RecallDirection, SentHistory};
use super::{EngineRequest, TerminalAction, UiContext, commands, lines, mouse, quit};
use crate::complete::NamesToComplete;
use crate::input::{EditCommand, HistorySearch, InputHistory};
use crate::key::MouseEvent;
use crate::keys::{self, Action};
use crate::paint::Grid;
use crate::signs::Sign;

/// Most rows of the input.
const INPUT_ROWS: u16 = 10;
const TIGHT_INPUT_ROWS: u16 = 3;

/// Columns of the sign before the input.
const PROMPT_COLUMNS: u16 = 2;

/// The base layer: text of the current pane, completion, and search in sent messages.
#[derive(Default)]
pub(super) struct InputLayer {
    pub(super) search: Option<HistorySearch>,
    /// Messages sent before, to any agent.
    pub(super) history: InputHistory,
    pub(super) loaded: SentHistory,
    pub(super) names: NamesToComplete,
    /// First row of the completion list in the last frame.
    list_row: u16,
}

impl Layer for InputLayer {
    fn bindings(&self, ctx: &UiContext) -> Vec<keys::KeyMode> {
        let mut modes = Vec::new();
        let Some(pane) = ctx.pane() else {
            return modes;
        };
        if self.search.is_some() {
            modes.push(keys::KeyMode::Search);
        } else if pane.completion.is_open() {
            modes.push(keys::KeyMode::List);
        }
        modes.extend(ctx.question_modes());
        if pane.editor.is_empty() && self.search.is_none() {
            modes.push(keys::KeyMode::Empty);
        }
        modes.push(keys::KeyMode::Input);
        modes
    }

    fn act(&mut self, action: Action, ctx: &mut UiContext) -> Handled {
        match action {
            Action::Edit(edit) => self.edit(edit, ctx),
            Action::Agent(number) => go_to_number(number, ctx),
            Action::Send => self.send(ctx),
            Action::SendNow => self.send_now(ctx),
            Action::Complete => self.complete(ctx),
            Action::SearchHistory => self.search_history(ctx),
            Action::HistoryPrevious => self.recall(RecallDirection::Older, ctx),
            Action::HistoryNext => self.recall(RecallDirection::Newer, ctx),
            Action::Editor => {
                let text = ctx.pane().map(|pane| pane.editor.text());
                ctx.effects.extend(text.map(TerminalAction::Edit));
            }
            Action::DeleteOrQuit if ctx.input_is_empty() => quit::leave(ctx),
            Action::DeleteOrQuit => self.edit(EditCommand::DeleteForward, ctx),
            Action::CycleApproval => cycle_approval(ctx),
            Action::Escape => self.escape(ctx),
            Action::Interrupt => self.interrupt_or_quit(ctx),
            Action::Suspend => suspend(ctx),
            Action::Quit => quit::leave(ctx),
            Action::Help => ctx.open(help(&ctx.bindings)),
            Action::Browse => Browse::open(ctx, None),
            Action::Board => Board::open(ctx),
            Action::Inbox => InboxLayer::open(ctx),
            Action::Redraw => ctx.effects.push(TerminalAction::Redraw),
            Action::ToolOutput => ctx.toggle_tool_output(),
            Action::AnswerQuestion => ctx.changes.push_back(LayerChange::OpenQuestion),
            action => {
                let _ = self.act_in_list(action, ctx) || go(action, ctx) || scroll(action, ctx);
            }
        }
        Handled::Yes
    }

    fn text(&mut self, text: &str, ctx: &mut UiContext) -> Handled {
        ctx.typed_at = Some(ctx.now);
        self.type_text(text, ctx);
        Handled::Yes
    }

    fn paste(&mut self, text: &str, ctx: &mut UiContext) -> Handled {
        let Some(pane) = ctx.current_mut() else {
            return Handled::Yes;
        };
        if let Err(error) = pane.editor.paste(text) {
            ctx.warn(&error);
        }
        self.typed(ctx);
        Handled::Yes
    }

    fn mouse(&mut self, mouse: MouseEvent, ctx: &mut UiContext) -> Handled {
        if let Some(id) = mouse::act(mouse, ctx) {
            Browse::open(ctx, Some(id));
        }
        if mouse.action == crate::key::MouseAction::Press {
            let listed = mouse.row.checked_sub(self.list_row);
            if let Some(row) = listed.filter(|_| mouse.row + 1 < ctx.rows) {
                self.click_entry(usize::from(row), ctx);
            } else if let Some(row) = mouse.row.checked_sub(ctx.input_row)
                && let Some(pane) = ctx.current_mut()
            {
                let column = usize::from(mouse.column.saturating_sub(PROMPT_COLUMNS));
                pane.editor.click(usize::from(row), column);
            }
        }
        Handled::Yes
    }

    fn draw(&mut self, area: Area, ctx: &mut UiContext, grid: &mut Grid) -> Area {
        // Taken out, because drawing reads everything else.
        let Some(mut pane) = ctx.panes.remove(&ctx.current) else {
            return area.above(area.row);
        };
        let mut bottom = area.bottom() - 1;
        let status = lines::status(ctx, &pane.agent.state, area.columns);
        grid.line(bottom, 0, &status);
        for line in self.completion_lines(&mut pane, ctx).iter().rev() {
            bottom -= 1;
            grid.line(bottom, 0, line);
        }
        self.list_row = bottom;
        let most = if ctx.is_tight() {
            TIGHT_INPUT_ROWS
        } else {
            INPUT_ROWS
        };
        let layout = pane
            .editor
            .layout(area.columns - PROMPT_COLUMNS, most.min(bottom - 2));
        ctx.panes.insert(ctx.current, pane);
        bottom -= u16::try_from(layout.rows.len()).unwrap_or(most).max(1);
        ctx.input_row = bottom;
        let prompt = Sign::User.text(ctx.options.symbols);
        grid.put(bottom, 0, prompt, crate::look::Tone::User);
        for (row, line) in (bottom..).zip(&layout.rows) {
            grid.line(row, PROMPT_COLUMNS, line);
        }
        if let Some(line) = self.search_line(area.columns) {
            grid.fill(bottom, crate::look::Tone::Text);
            grid.line(bottom, 0, &line);
        }
        let row = bottom + u16::try_from(layout.cursor.0).unwrap_or(u16::MAX);
        let column = PROMPT_COLUMNS + u16::try_from(layout.cursor.1).unwrap_or(0);
        grid.cursor = Some((row, column.min(area.columns - 1)));
        area.above(bottom)
    }
}

impl InputLayer {
    /// Drops the state of the agent that leaves the screen.
    pub(super) fn leave_agent(&mut self) {
        self.search = None;
    }

    /// Sends the text of the input.
    pub(super) fn send(&mut self, ctx: &mut UiContext) {
        let Some(pane) = ctx.current_mut() else {
            return;
        };
        if pane.editor.continue_line() || pane.editor.text().trim().is_empty() {
            return;
        }
        let input = UserInput::parse(pane.editor.text());
        if holds_key_back(&input, ctx) {
            return;
        }
        let Some(pane) = ctx.current_mut() else {
            return;
        };
        pane.editor.take();
        pane.put_back = None;
        pane.scrollback.look_at_end();
        self.history.sent(input.line().to_owned());
        self.typed(ctx);
        commands::submit(ctx, input);
    }

    /// Interrupts the answer and sends queued messages. A running tool continues: they follow it
    /// anyway.
    fn send_now(&mut self, ctx: &mut UiContext) {
        let live = ctx.roster.live(ctx.current);
        let doing = live.and_then(|live| live.turn.as_ref());
        let phase = doing.map(|doing| doing.phase.clone());
        let is_left_over = live.is_some_and(|live| !live.is_busy() && !live.queued.is_empty());
        if !ctx.input_is_empty() {
            self.send(ctx);
        } else if is_left_over {
            // A message that an earlier process queued gets a separate turn.
            let answer = UserRequest::Do(AgentJob::Mail);
            ctx.effects.push(EngineRequest::Send(ctx.current, answer));
        }
        match phase {
            None => {}
            Some(Phase::Runs) => ctx.toast("Will be sent when the current tool finishes"),
            Some(_) => {
                ctx.sends_now = true;
                ctx.interrupt();
            }
        }
    }

    fn escape(&mut self, ctx: &mut UiContext) {
        let armed = ctx.take_armed();
        if self.close_list(ctx) || ctx.selection.take().is_some() {
            return;
        }
        match armed {
            Some(Again::Interrupted) => return,
            Some(Again::Clears) => {
                self.clear_input(ctx);
                ctx.toast = None;
                return;
            }
            Some(Again::Sends) => {
                ctx.toast = None;
                return;
            }
            Some(Again::Browses) if ctx.input_is_empty() && !ctx.is_busy() => {
                return Browse::open(ctx, None);
            }
            Some(Again::Browses | Again::Quits | Again::Suspends) | None => {}
        }
        if ctx.is_busy() {
            ctx.interrupt();
        } else if !ctx.input_is_empty() {
            ctx.toast("Esc again to clear");
            ctx.arm(Again::Clears, AGAIN);
        } else {
            ctx.toast("Esc again to browse");
            ctx.arm(Again::Browses, AGAIN);
        }
    }

    fn interrupt_or_quit(&mut self, ctx: &mut UiContext) {
        let armed = ctx.take_armed();
        if ctx.selection.is_some() {
            mouse::copy_selection(ctx);
            ctx.selection = None;
        } else if self.close_list(ctx) {
        } else if ctx.is_busy() {
            ctx.interrupt();
        } else if !ctx.input_is_empty() {
            self.clear_input(ctx);
            ctx.toast("Cleared. Ctrl-Y to restore");
        } else if armed == Some(Again::Quits) {
            quit::leave(ctx);
        } else {
            ctx.toast("Ctrl-C again to quit");
            ctx.arm(Again::Quits, AGAIN);
        }
    }

    fn clear_input(&mut self, ctx: &mut UiContext) {
        if let Some(pane) = ctx.current_mut() {
            pane.editor.clear();
        }
        self.typed(ctx);
    }
}

/// Holds back text that looks like a key, unless Enter was pressed again. Returns true if held.
fn holds_key_back(input: &UserInput, ctx: &mut UiContext) -> bool {
    if !looks_like_key(input.line()) {
        return false;
    }
    if matches!(input, UserInput::Command(typed) if typed.command.name == "key") {
        ctx.toast("Type only /key PROVIDER. The key is asked for next, hidden");
        return true;
    }
    if ctx.take_armed_as(Again::Sends) {
        return false;
    }
    ctx.toast("This looks like an API key. Enter again to send it, Esc to keep editing");
    ctx.arm(Again::Sends, TOAST);
    true
}

fn suspend(ctx: &mut UiContext) {
    let armed = ctx.take_armed();
    if ctx.roster.working() == 0 || armed == Some(Again::Suspends) {
        ctx.toast = None;
        ctx.effects.push(TerminalAction::Suspend);
    } else {
        ctx.toast("Agents are working. Ctrl-Z again to pause them");
        ctx.arm(Again::Suspends, AGAIN);
    }
}

fn cycle_approval(ctx: &mut UiContext) {
    let mode = ctx.pane().map(|pane| ctx.approval_of(&pane.agent.state));
    let next = match mode.unwrap_or(Approve::Ask) {
        Approve::Read => Approve::Ask,
        Approve::Ask => Approve::Edits,
        Approve::Edits | Approve::All => Approve::Read,
    };
    ctx.grant_offer = None;
    ctx.command(format!("/approve {}", next.word()));
}

/// Switches to another agent, or answers its question; returns false for other actions.
fn go(action: Action, ctx: &mut UiContext) -> bool {
    let other = ctx.other_question();
    let (asking, call) = (
        other.map(|(id, _)| id),
        other.map(|(_, question)| question.call),
    );
    match action {
        Action::TreeParent => {
            let own = ctx.roster.get(ctx.current);
            let parent = own.and_then(|known| known.branch.agent.parent);
            ctx.go_to(parent, "No parent agent");
        }
        Action::TreeChild => {
            let child = ctx.roster.children(ctx.current).next().map(|(id, _)| id);
            ctx.go_to(child, "No child agents. /fork makes one");
        }
        Action::TreePrevious => go_beside(-1, ctx),
        Action::TreeNext => go_beside(1, ctx),
        Action::NextNeedingMe => ctx.go_to(asking, "No agent is waiting for you"),
        Action::PreviousAgent => ctx.go_to(ctx.before, "No previous agent"),
        Action::OtherGo => ctx.go_to(asking, "No other agent needs approval"),
        Action::OtherNo => match call {
            Some(call) => ctx.answer(call, Answer::No(None)),
            None => ctx.toast("No other agent needs approval"),
        },
        _ => return false,
    }
    true
}

fn go_beside(step: isize, ctx: &mut UiContext) {
    let siblings = ctx.roster.siblings(ctx.current);
    let place = siblings.iter().position(|id| *id == ctx.current);
    let beside = place
        .and_then(|place| place.checked_add_signed(step))
        .and_then(|place| siblings.get(place).copied());
    ctx.go_to(beside, "No agent on that side");
}

fn go_to_number(number: u8, ctx: &mut UiContext) {
    let index = usize::from(number).checked_sub(1);
    let agent = index.and_then(|index| ctx.roster.all().nth(index));
    let agent = agent.map(|(id, _)| id);
    ctx.go_to(agent, "No agent with that number");
}

/// Scrolls the conversation; returns false for other actions.
fn scroll(action: Action, ctx: &mut UiContext) -> bool {
    let page = isize::from(u8::try_from(ctx.rows.saturating_sub(6)).unwrap_or(50)).max(1);
    let rows = match action {
        Action::ScrollUp => -1,
        Action::ScrollDown => 1,
        Action::ScrollPageUp => -page,
        Action::ScrollPageDown => page,
        Action::ScrollHalfUp => -page / 2,
        Action::ScrollHalfDown => page / 2,
        Action::ScrollTop => isize::MIN / 2,
        Action::ScrollBottom => {
            if let Some(pane) = ctx.current_mut() {
                pane.scrollback.look_at_end();
            }
            return true;
        }
        _ => return false,
    };
    mouse::scroll(rows, ctx);
    true
}
