//! Markdown as HTML with our tags only. HTML written by a model or page is escaped.

use std::fmt::Write as _;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::html::{diff, escape};
use super::page::is_diff;

/// Maximum nesting of lists and quotes; browsers fail on deep trees.
const MOST_DEPTH: usize = 24;

pub(super) fn render(text: &str) -> String {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut prose = Prose::default();
    for event in Parser::new_ext(text, options) {
        prose.event(event);
    }
    prose.finish()
}

#[derive(Default)]
struct Prose {
    html: String,
    /// Closing tags of the open parts.
    open: Vec<&'static str>,
    /// Open code block, and its language.
    code: Option<(String, String)>,
    /// Columns of the open table.
    columns: Vec<Alignment>,
    column: usize,
    is_head: bool,
}

impl Prose {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((code, _)) => code.push_str(&text),
                None => self.html.push_str(&escape(&text)),
            },
            Event::Code(text) => {
                let _ = write!(self.html, "<code>{}</code>", escape(&text));
            }
            Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.html.push_str(&escape(&text)),
            Event::SoftBreak => self.html.push('\n'),
            Event::HardBreak => self.html.push_str("<br>\n"),
            Event::Rule => self.html.push_str("<hr>\n"),
            Event::TaskListMarker(done) => self.html.push_str(if done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let (open, close): (String, &'static str) = match tag {
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((String::new(), language));
                (String::new(), "")
            }
            Tag::Paragraph => ("<p>".into(), "</p>\n"),
            Tag::Heading { level, .. } => heading(level),
            Tag::BlockQuote(_) => ("<blockquote>".into(), "</blockquote>\n"),
            Tag::List(None) => ("<ul>\n".into(), "</ul>\n"),
            Tag::List(Some(first)) => (format!("<ol start=\"{first}\">\n"), "</ol>\n"),
            Tag::Item => ("<li>".into(), "</li>\n"),
            Tag::Emphasis => ("<em>".into(), "</em>"),
            Tag::Strong => ("<strong>".into(), "</strong>"),
            Tag::Strikethrough => ("<del>".into(), "</del>"),
            Tag::Link { dest_url, .. } => link(&dest_url),
            // A page loads nothing: show a picture as its address.
            Tag::Image { dest_url, .. } => {
                let (open, close) = link(&dest_url);
                (format!("{open}🖼 "), close)
            }
            Tag::Table(columns) => {
                self.columns = columns;
                ("<div class=table><table>\n".into(), "</table></div>\n")
            }
            Tag::TableHead => {
                self.is_head = true;
                self.column = 0;
                ("<tr>".into(), "</tr>\n")
            }
            Tag::TableRow => {
                self.column = 0;
                ("<tr>".into(), "</tr>\n")
            }
            Tag::TableCell => self.cell(),
            _ => (String::new(), ""),
        };
        let is_deep = self.open.len() >= MOST_DEPTH;
        if !is_deep {
            self.html.push_str(&open);
        }
        self.open.push(if is_deep { "" } else { close });
    }

    fn cell(&mut self) -> (String, &'static str) {
        let aligned = match self.columns.get(self.column) {
            Some(Alignment::Center) => " class=center",
            Some(Alignment::Right) => " class=right",
            _ => "",
        };
        self.column += 1;
        if self.is_head {
            (format!("<th{aligned}>"), "</th>")
        } else {
            (format!("<td{aligned}>"), "</td>")
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::TableHead => self.is_head = false,
            TagEnd::CodeBlock => {
                if let Some((code, language)) = self.code.take() {
                    self.html.push_str(&block(&code, &language));
                }
            }
            _ => {}
        }
        if let Some(close) = self.open.pop() {
            self.html.push_str(close);
        }
    }

    fn finish(mut self) -> String {
        while let Some(close) = self.open.pop() {
            self.html.push_str(close);
        }
        self.html
    }
}

/// Headings of a text are below those of the page.
fn heading(level: HeadingLevel) -> (String, &'static str) {
    match level {
        HeadingLevel::H1 => ("<h3>".into(), "</h3>\n"),
        HeadingLevel::H2 => ("<h4>".into(), "</h4>\n"),
        _ => ("<h5>".into(), "</h5>\n"),
    }
}

/// Renders a link to a web page; other targets appear as text.
fn link(address: &str) -> (String, &'static str) {
    let lower = address.trim_start().to_ascii_lowercase();
    let leads = ["https://", "http://", "mailto:"];
    if leads.iter().any(|scheme| lower.starts_with(scheme)) {
        let address = escape(address);
        let open = format!("<a rel=\"noopener noreferrer nofollow\" href=\"{address}\">");
        (open, "</a>")
    } else {
        (
            format!("<span class=nolink title=\"{}\">", escape(address)),
            "</span>",
        )
    }
}

fn block(code: &str, language: &str) -> String {
    if language.starts_with("diff") || language.is_empty() && is_diff(code) {
        return diff(code);
    }
    format!("<pre>{}</pre>\n", escape(code.trim_end_matches('\n')))
}
