//! Welcome text of a new agent.

use ikigai_core::settings::Settings;

use super::UiOptions;
use super::lines::NARROW;
use crate::line::{TextLine, TextSpan};
use crate::look::{Look, Tone};
use crate::text::{clean, wrap};

/// Indent of examples.
const INDENT: &str = "        ";

/// Renders the welcome text: the model, examples, and instructions for keys and quitting.
pub(super) fn lines(around: &UiOptions, settings: &Settings, columns: u16) -> Vec<TextLine> {
    let model = settings.model.as_ref();
    let provider = model.and_then(|model| model.provider.as_deref());
    let name = model
        .and_then(|model| model.model.as_deref())
        .unwrap_or("demo");
    let is_demo = provider.is_none_or(|provider| provider == "demo");
    let program = TextSpan::new(around.program, Look::of(Tone::Heading).with(Look::BOLD));
    let about = if is_demo {
        " · demo model: no API key found. It is scripted, works offline, and runs real tools."
            .to_owned()
    } else {
        format!(" · model: {}", clean(name))
    };
    let mut lines = vec![TextLine::new(vec![
        program,
        TextSpan::new(about, Tone::Text),
    ])];
    let is_narrow = columns < NARROW;
    let tried = [
        ("list the rust files", "run a tool"),
        ("/fork count the tests", "a second agent in parallel"),
        ("Esc Esc", "browse and rewind this conversation"),
    ];
    for (index, (typed, what)) in tried.into_iter().enumerate() {
        let lead = if index == 0 { "  try   " } else { INDENT };
        let mut line = vec![
            TextSpan::new(lead, Tone::Faint),
            TextSpan::new(typed, Tone::Code),
        ];
        if !is_narrow {
            let gap = " ".repeat(29_usize.saturating_sub(typed.len()));
            line.push(TextSpan::new(format!("{gap}{what}"), Tone::Faint));
        }
        lines.push(TextLine::new(line));
    }
    if is_demo {
        let about = if is_narrow {
            "  a real model"
        } else {
            "               use a real model (or openai, google)"
        };
        let mut real = vec![
            TextSpan::new(INDENT, Tone::Faint),
            TextSpan::new("/key anthropic", Tone::Code),
            TextSpan::new(about, Tone::Faint),
        ];
        if let Some(found) = &around.local_server {
            real.push(TextSpan::new(
                format!("  ·  found {}", clean(found)),
                Tone::Good,
            ));
        }
        lines.push(TextLine::new(real));
    }
    let (between, leave) = if is_narrow {
        ("  ", "quit")
    } else {
        ("     ", "quit (everything is saved)")
    };
    let mut last = vec![TextSpan::new("  ", Tone::Faint)];
    for (key, what) in [("?", "keys"), ("/", "commands"), ("Ctrl-D", leave)] {
        last.push(TextSpan::new(key, Tone::Code));
        last.push(TextSpan::new(format!("  {what}{between}"), Tone::Faint));
    }
    lines.push(TextLine::new(last));
    let hanging = [TextSpan::new(INDENT, Tone::Faint)];
    let (first, rest) = lines.split_at(1);
    let rows = first.iter().flat_map(|line| wrap(line, columns, &[]));
    rows.chain(rest.iter().flat_map(|line| wrap(line, columns, &hanging)))
        .collect()
}
