//! Page as HTML: one file that loads nothing and runs no script.

use std::fmt::Write as _;

use ikigai_core::counts::counted;
use ikigai_core::{AgentId, Row, RowRef};
use ikigai_store::AgentRecord;

use super::page::{Item, Page, Speaker, is_diff, state, visible};
use super::{named, prose};

const STYLE: &str = include_str!("page.css");

/// Diffs with fewer lines are unfolded.
const SHORT_DIFF_LINES: usize = 40;

pub(super) fn begin(page: &Page) -> String {
    let title = escape(&page.title());
    let mut html = format!(
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=referrer content=no-referrer>\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>{title}</h1><p class=made>{} · exported on {}</p></header>\n",
        counted(page.rows(), "event"),
        escape(&page.made()),
    );
    if page.agents().len() > 1 {
        html.push_str(&tree(page));
    }
    html.push_str("<main>\n");
    html
}

/// Renders the tree of agents, with links to their sections.
fn tree(page: &Page) -> String {
    let mut html = "<nav aria-label=agents>\n".to_owned();
    for (agent, depth) in page.agents() {
        let _ = writeln!(
            html,
            "<a class=\"d{}\" href=\"#{}\"><span class=\"dot {}\"></span>{} <small>{}</small></a>",
            (*depth).min(8),
            agent_anchor(agent.id),
            state(agent),
            escape(&visible(&agent.name)),
            counted(agent.head.0, "event")
        );
    }
    html.push_str("</nav>\n");
    html
}

pub(super) fn end() -> String {
    "</main>\n</body>\n</html>\n".to_owned()
}

pub(super) fn agent(page: &Page, agent: &AgentRecord) -> String {
    let mut html = format!(
        "<section id=\"{}\">\n<h2>{} <span class=\"state {state}\">{state}</span></h2>\n<p class=made>created {}",
        agent_anchor(agent.id),
        escape(&visible(&agent.name)),
        escape(&page.time(agent.created_at)),
        state = state(agent),
    );
    if let Some(point) = agent.fork_point {
        let _ = write!(html, " · forked at {}", reference(page, point));
    } else if let Some(parent) = agent.parent {
        let known = page.agents().iter().find(|(known, _)| known.id == parent);
        if let Some((parent, _)) = known {
            let name = escape(&visible(&parent.name));
            let _ = write!(
                html,
                " · by <a href=\"#{}\">{name}</a>",
                agent_anchor(parent.id)
            );
        }
    }
    html.push_str("</p>\n");
    html
}

pub(super) fn agent_end() -> String {
    "</section>\n".to_owned()
}

/// Renders a reference to another agent's row; a link, if on the page.
fn reference(page: &Page, row: RowRef) -> String {
    let text = escape(&format!("#{}.{}", page.name(row.agent), row.seq));
    if page.has(row.agent) {
        format!("<a href=\"#{}\">{text}</a>", row_anchor(row))
    } else {
        text
    }
}

fn agent_anchor(agent: AgentId) -> String {
    format!("a-{agent}")
}

fn row_anchor(row: RowRef) -> String {
    format!("r-{}-{}", row.agent, row.seq)
}

/// Renders the usage line below a turn.
pub(super) fn turn(line: &str) -> String {
    format!("<p class=turn>{}</p>\n", escape(line))
}

pub(super) fn row(page: &Page, row: &Row, item: &Item, is_remembered: bool) -> String {
    let (class, body) = match item {
        Item::Nothing => return String::new(),
        Item::Said {
            who,
            thinking,
            text,
        } => (who.word(), speech(*who, thinking, text)),
        Item::Folded {
            sign,
            name,
            line,
            text,
            failed,
        } => ("tool", fold(sign, name, line, text, *failed)),
        Item::Note { text, failed } => {
            let class = if *failed { "note failed" } else { "note" };
            (class, format!("<p>{}</p>", escape(text)))
        }
    };
    let off = if is_remembered { "" } else { " off" };
    let title = if is_remembered {
        ""
    } else {
        " title=\"not in context\""
    };
    let anchor = row_anchor(row.at);
    let place = named(row.at);
    let time = escape(&page.time(row.created_at));
    let by = row.author.as_ref();
    let by = by.map_or_else(String::new, |by| {
        format!("<span class=by>{}</span>", escape(by.as_str()))
    });
    format!(
        "<article class=\"{class}{off}\" id=\"{anchor}\"{title}>\
         <a class=place href=\"#{anchor}\" title=\"{time}\">{place}</a>{by}{body}</article>\n"
    )
}

fn speech(who: Speaker, thinking: &[String], text: &str) -> String {
    let mut html = String::new();
    for thought in thinking {
        let _ = write!(
            html,
            "<details class=thinking><summary>thinking</summary><div class=plain>{}</div></details>",
            escape(thought)
        );
    }
    match who {
        // Users type text, not Markdown.
        Speaker::User => {
            let _ = write!(html, "<div class=plain>{}</div>", escape(text));
        }
        Speaker::Model | Speaker::Summary => {
            let _ = write!(html, "<div class=prose>{}</div>", prose::render(text));
        }
    }
    html
}

fn fold(sign: &str, name: &str, line: &str, text: &str, failed: bool) -> String {
    let failed = if failed { " class=failed" } else { "" };
    let line = if line.is_empty() {
        String::new()
    } else {
        format!(" <code>{}</code>", escape(line))
    };
    let summary = format!(
        "<span class=sign>{sign}</span> <b>{}</b>{line}",
        escape(name)
    );
    if text.trim().is_empty() {
        return format!("<p{failed}>{summary}</p>");
    }
    let is_diff = is_diff(text);
    let body = if is_diff {
        diff(text)
    } else {
        format!("<pre>{}</pre>", escape(text.trim_end_matches('\n')))
    };
    let is_short = text.lines().count() <= SHORT_DIFF_LINES;
    let open = if is_diff && is_short { " open" } else { "" };
    format!("<details{failed}{open}><summary>{summary}</summary>{body}</details>")
}

/// Renders a coloured diff.
pub(super) fn diff(text: &str) -> String {
    let mut html = "<pre class=diff>".to_owned();
    for line in text.trim_end_matches('\n').lines() {
        let tag = match line.as_bytes().first() {
            Some(b'+') => "ins",
            Some(b'-') => "del",
            Some(b'@') => "i",
            _ => "span",
        };
        // The line break belongs to the line, so that its colour spans the whole width.
        let _ = write!(html, "<{tag}>{}\n</{tag}>", escape(line));
    }
    html.push_str("</pre>\n");
    html
}

/// Escapes a text for HTML, in and outside of attributes.
pub(super) fn escape(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            _ => html.push(c),
        }
    }
    html
}
