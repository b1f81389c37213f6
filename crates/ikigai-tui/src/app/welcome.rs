//! What somebody sees first.

use ikigai_core::settings::Settings;

use super::Surroundings;
use super::lines::NARROW;
use crate::line::{Line, Span};
use crate::look::{Look, Role};
use crate::text::{clean, wrap};

/// Where what can be typed begins.
const INDENT: &str = "        ";

/// How to begin: with which model one talks, what to try, how to get a real model, how to leave.
pub(super) fn lines(around: &Surroundings, settings: &Settings, columns: u16) -> Vec<Line> {
    let model = settings.model.as_ref();
    let provider = model.and_then(|model| model.provider.as_deref());
    let name = model
        .and_then(|model| model.model.as_deref())
        .unwrap_or("demo");
    let is_demo = provider.is_none_or(|provider| provider == "demo");
    let program = Span::new(around.program, Look::of(Role::Heading).with(Look::BOLD));
    let about = if is_demo {
        " · demo model: no API key found. It is scripted, works offline, and runs real tools."
            .to_owned()
    } else {
        format!(" · {} answers", clean(name))
    };
    let mut lines = vec![Line::new(vec![program, Span::new(about, Role::Text)])];
    let is_narrow = columns < NARROW;
    let tried = [
        ("list the rust files", "a tool at work"),
        ("/fork count the tests", "a second agent, beside you"),
        ("Esc Esc", "walk back through all of this"),
    ];
    for (index, (typed, what)) in tried.into_iter().enumerate() {
        let lead = if index == 0 { "  try   " } else { INDENT };
        let mut line = vec![Span::new(lead, Role::Faint), Span::new(typed, Role::Code)];
        if !is_narrow {
            let gap = " ".repeat(29_usize.saturating_sub(typed.len()));
            line.push(Span::new(format!("{gap}{what}"), Role::Faint));
        }
        lines.push(Line::new(line));
    }
    if is_demo {
        let others = if is_narrow {
            "  (or openai …)"
        } else {
            "   (or openai, google)"
        };
        let mut real = vec![
            Span::new("  real  ", Role::Faint),
            Span::new("/key anthropic", Role::Code),
            Span::new(others, Role::Faint),
        ];
        if let Some(found) = &around.local_server {
            real.push(Span::new(
                format!("  ·  found {}", clean(found)),
                Role::Good,
            ));
        }
        lines.push(Line::new(real));
    }
    let (between, leave) = if is_narrow {
        ("  ", "leave")
    } else {
        ("     ", "leave: everything is kept")
    };
    let mut last = vec![Span::new("  ", Role::Faint)];
    for (key, what) in [("?", "keys"), ("/", "commands"), ("Ctrl-D", leave)] {
        last.push(Span::new(key, Role::Code));
        last.push(Span::new(format!("  {what}{between}"), Role::Faint));
    }
    lines.push(Line::new(last));
    let hanging = [Span::new(INDENT, Role::Faint)];
    let (first, rest) = lines.split_at(1);
    let rows = first.iter().flat_map(|line| wrap(line, columns, &[]));
    rows.chain(rest.iter().flat_map(|line| wrap(line, columns, &hanging)))
        .collect()
}
