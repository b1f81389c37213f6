//! Runs typed lines: commands of the screen, or requests to the agent.

use ikigai_engine::{CommandLine, Listing, ListingView, UserInput, UserRequest};

use super::board::Board;
use super::browse::Browse;
use super::inbox::InboxLayer;
use super::key_entry::KeyEntry;
use super::overlay::{help, keys_text};
use super::terminal_programs::wants_terminal;
use super::{EngineRequest, LoadRequest, PickerKind, TerminalAction, UiContext, picker, quit};

/// Runs a line as if the user had typed it.
pub(super) fn submit(ctx: &mut UiContext, input: UserInput) {
    ctx.notes.clear();
    ctx.grant_offer = None;
    // Dismiss a temporary toast; keep a question.
    ctx.toast.take_if(|toast| toast.until.is_some());
    match input {
        UserInput::Command(typed) if submit_here(ctx, &typed) => {
            if is_listing(&typed) {
                let view = match typed.command.name {
                    "keys" => ListingView::Text(keys_text(&ctx.bindings)),
                    _ => ListingView::Screen,
                };
                list(ctx, typed, view);
            }
        }
        UserInput::Command(typed) if typed.only_shows() => list(ctx, typed, ListingView::Overlay),
        UserInput::Shell(typed) if wants_terminal(&typed.command) => {
            let (command, sent) = (typed.command, typed.sent);
            ctx.effects.push(TerminalAction::Run { command, sent });
        }
        input => {
            let request = UserRequest::Line(input);
            ctx.effects.push(EngineRequest::Send(ctx.current, request));
        }
    }
}

/// Reports whether a command lists something. The browser only shows rows of the log, and a stored
/// search would find itself.
fn is_listing(typed: &CommandLine) -> bool {
    typed.only_shows() && !matches!(typed.command.name, "history" | "search")
}

/// Has the row of a typed listing stored, and its output shown if the screen does not show it.
fn list(ctx: &mut UiContext, command: CommandLine, view: ListingView) {
    let request = UserRequest::List(Listing { command, view });
    ctx.effects.push(EngineRequest::Send(ctx.current, request));
}

/// Executes a command of the screen; returns false if it is none.
fn submit_here(ctx: &mut UiContext, typed: &CommandLine) -> bool {
    match (typed.command.name, &*typed.arguments) {
        ("quit", "") => quit::leave(ctx),
        ("history", "") => Browse::open_all(ctx),
        ("model", "") => ctx.effects.push(LoadRequest::Choices(PickerKind::Model)),
        ("sessions", "") => ctx.effects.push(LoadRequest::Choices(PickerKind::Session)),
        ("switch", "") => picker::choose_agent(ctx),
        ("key", "") => picker::choose_key_provider(ctx),
        ("key", provider) if !provider.contains(char::is_whitespace) => {
            ctx.open(KeyEntry::new(provider));
        }
        ("theme", "") => picker::choose_theme(ctx),
        ("keys", "") => ctx.open(help(&ctx.bindings)),
        ("agents", "") => Board::open(ctx),
        ("inbox", "") => InboxLayer::open(ctx),
        ("merge", arguments) => {
            let merge = LoadRequest::MergePreview(ctx.current, arguments.to_owned());
            ctx.effects.push(merge);
        }
        ("search", words) if !words.is_empty() => ctx.search_log(words),
        ("take", "") => ctx.effects.push(EngineRequest::TakeOver(ctx.current)),
        _ => return false,
    }
    true
}
