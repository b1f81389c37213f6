//! The mouse on the conversation: the wheel scrolls, a drag selects text.

use super::{LoadRequest, TerminalAction, UiContext};
use crate::key::{MouseAction, MouseEvent};
use crate::scrollback::{Id, Selection, TextPosition};
use ikigai_core::counts::counted;

/// Rows that the wheel scrolls.
pub(super) const WHEEL_ROWS: isize = 3;

/// Scrolls or selects; returns the event that was clicked.
pub(super) fn act(mouse: MouseEvent, ctx: &mut UiContext) -> Option<Id> {
    match mouse.action {
        MouseAction::WheelUp => scroll(-WHEEL_ROWS, ctx),
        MouseAction::WheelDown => scroll(WHEEL_ROWS, ctx),
        MouseAction::Press => {
            ctx.selection = place_at(mouse, ctx).map(|place| Selection {
                from: place,
                to: place,
            });
        }
        MouseAction::Drag => {
            let place = place_at(mouse, ctx);
            if let (Some(selection), Some(place)) = (&mut ctx.selection, place) {
                selection.to = place;
            }
        }
        MouseAction::Release => {
            let selection = ctx.selection?;
            if selection.from == selection.to {
                ctx.selection = None;
                return Some(selection.from.id).filter(|id| id.row().is_some());
            }
            copy_selection(ctx);
        }
    }
    None
}

/// Scrolls by a number of rows, and reads older rows at the top.
pub(super) fn scroll(rows: isize, ctx: &mut UiContext) {
    let reads_on = ctx.with_pane(|pane, eye| {
        let is_top = pane.scrollback.scroll(rows, eye);
        is_top && !pane.is_complete
    });
    if reads_on == Some(true) {
        ctx.effects.push(LoadRequest::OlderRows);
    }
    if rows > 0 {
        ctx.want_newer();
    }
}

fn place_at(mouse: MouseEvent, ctx: &UiContext) -> Option<TextPosition> {
    let visible = ctx.visible.get(usize::from(mouse.row))?;
    Some(TextPosition {
        id: visible.id?,
        row: visible.row,
        column: usize::from(mouse.column),
    })
}

/// Copies the selected text.
pub(super) fn copy_selection(ctx: &mut UiContext) {
    let (Some(selection), Some(pane)) = (ctx.selection, ctx.pane()) else {
        return;
    };
    let places = |id| pane.scrollback.place(id);
    let rows = ctx.visible.iter().filter_map(|visible| {
        let (from, to) = selection.columns(visible, &places)?;
        Some((visible.line()?, from, to))
    });
    let text = crate::scrollback::join_rows(rows);
    if text.is_empty() {
        return;
    }
    let count = counted(text.chars().count(), "character");
    ctx.toast(format!(
        "Copied {count}. Shift-drag to select with the terminal"
    ));
    ctx.effects.push(TerminalAction::Copy(text));
}
