//! Conversion of a page to Markdown, in the order of the page.

use ikigai_core::word_list::WordList;
use reqwest::Url;

use super::html::{HtmlTag, HtmlToken, tokens};
use super::text::TextLines;

/// Elements that are omitted with their content.
const LEFT_OUT: &[&str] = &[
    "audio", "canvas", "iframe", "noscript", "object", "script", "select", "style", "svg",
    "template", "textarea", "video",
];

/// Elements that are paragraphs, with an empty line around them.
const PARAGRAPHS: &[&str] = &[
    "article", "aside", "body", "details", "dl", "fieldset", "figure", "footer", "form", "header",
    "hr", "main", "nav", "p", "section", "table",
];

/// Elements that only start and end a line.
const LINES: WordList = WordList(
    "address caption center dd div dt figcaption legend option summary tbody tfoot thead tr",
);

/// Characters from which on the main part replaces the whole page.
const LEAST_MAIN: usize = 200;

/// Most open elements; deeper ones become plain text.
const MOST_OPEN: usize = 64;

/// Page as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WebPage {
    /// Title; empty if there is none.
    pub(crate) title: String,
    /// Content.
    pub(crate) text: String,
}

/// Converts a page to Markdown; makes links absolute with `base`.
///
/// Accepts anything, in linear time.
pub(crate) fn page(html: &str, base: &Url) -> WebPage {
    let mut writer = Writer::new(base);
    for token in tokens(html) {
        if writer.lines.is_full() {
            break;
        }
        match token {
            HtmlToken::Text(text) => writer.text(&text),
            HtmlToken::Open(tag) => writer.open(&tag),
            HtmlToken::Close(name) => writer.close(&name),
        }
    }
    writer.finish()
}

/// Open element that needs an action when it closes.
struct OpenElement {
    name: String,
    kind: ElementKind,
}

enum ElementKind {
    /// Text between these marks.
    Inline(&'static str),
    /// Link to this address.
    Link(String),
    /// List, with the number of the next item if it is numbered.
    List(Option<u64>),
    /// Element with indented lines, such as an item.
    SetIn,
    Preformatted,
    /// Row, with its number of cells; true if all of them are headings.
    Row(usize, bool),
}

struct Writer<'a> {
    base: &'a Url,
    lines: TextLines,
    open: Vec<OpenElement>,
    title: String,
    in_title: bool,
    /// Omitted element, and the number of open ones of the same name.
    left_out: Option<(String, usize)>,
    /// Start and end of the main part.
    main: Option<(usize, Option<usize>)>,
}

impl<'a> Writer<'a> {
    fn new(base: &'a Url) -> Self {
        Self {
            base,
            lines: TextLines::default(),
            open: Vec::new(),
            title: String::new(),
            in_title: false,
            left_out: None,
            main: None,
        }
    }

    fn text(&mut self, text: &str) {
        if self.left_out.is_some() {
            return;
        }
        if self.in_title {
            self.title.push_str(text);
        } else if self.is_preformatted() {
            self.lines.verbatim(text);
        } else {
            self.lines.flowing(text);
        }
    }

    fn open(&mut self, tag: &HtmlTag) {
        let name = tag.name.as_str();
        if let Some((left_out, count)) = &mut self.left_out {
            *count += usize::from(left_out == name);
            return;
        }
        match name {
            name if LEFT_OUT.contains(&name) => self.left_out = Some((name.to_owned(), 1)),
            // The first title is that of the page; pictures have titles, too.
            "title" => self.in_title = self.title.is_empty(),
            _ if self.is_preformatted() => self.open_preformatted(tag),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = name
                    .bytes()
                    .last()
                    .map_or(1, |digit| usize::from(digit - b'0'));
                self.lines.paragraph();
                self.lines.mark(format!("{} ", "#".repeat(level)));
            }
            "br" => self.lines.line(),
            "hr" => {
                self.lines.paragraph();
                self.lines.flowing("---");
                self.lines.paragraph();
            }
            "img" => self.image(tag),
            "a" => {
                self.close("a");
                if let Some(address) = tag.attribute("href").and_then(|href| self.complete(&href)) {
                    self.push(name, ElementKind::Link(address));
                }
            }
            "b" | "strong" => self.push(name, ElementKind::Inline("**")),
            "i" | "em" => self.push(name, ElementKind::Inline("*")),
            "code" | "kbd" | "samp" | "tt" => self.push(name, ElementKind::Inline("`")),
            "ul" | "menu" => self.push(name, ElementKind::List(None)),
            "ol" => {
                let start = tag
                    .attribute("start")
                    .and_then(|text| text.trim().parse().ok());
                self.push(name, ElementKind::List(Some(start.unwrap_or(1))));
            }
            "li" => self.item(),
            "blockquote" => {
                self.lines.paragraph();
                self.lines.set_in("> ", "> ");
                self.push(name, ElementKind::SetIn);
            }
            "pre" => {
                self.lines.paragraph();
                self.lines.begin_verbatim(&language(tag));
                self.push(name, ElementKind::Preformatted);
            }
            "tr" => {
                self.close_within("tr", "table");
                self.lines.line();
                self.push(name, ElementKind::Row(0, true));
            }
            "td" | "th" => self.cell(name == "th"),
            "main" => {
                self.lines.paragraph();
                let from = self.lines.length();
                self.main.get_or_insert((from, None));
            }
            name => self.block(name),
        }
    }

    fn close(&mut self, name: &str) {
        if let Some((left_out, count)) = &mut self.left_out {
            *count -= usize::from(left_out == name);
            if *count == 0 {
                self.left_out = None;
            }
            return;
        }
        match name {
            "title" => self.in_title = false,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.lines.unmark();
                self.lines.paragraph();
            }
            "main" => {
                self.lines.paragraph();
                let length = self.lines.length();
                if let Some((_, end)) = &mut self.main {
                    end.get_or_insert(length);
                }
            }
            name => {
                if let Some(at) = self.open.iter().rposition(|open| open.name == name) {
                    self.close_down_to(at);
                }
                self.block(name);
            }
        }
    }

    /// Closes the newest element of a name, if it is inside of the newest `outer`.
    fn close_within(&mut self, name: &str, outer: &str) {
        let found = self
            .open
            .iter()
            .rposition(|open| open.name == name || open.name == outer);
        if let Some(at) = found
            && self.open.get(at).is_some_and(|open| open.name == name)
        {
            self.close_down_to(at);
        }
    }

    fn close_down_to(&mut self, at: usize) {
        while self.open.len() > at
            && let Some(open) = self.open.pop()
        {
            self.end(open);
        }
    }

    fn end(&mut self, open: OpenElement) {
        match open.kind {
            ElementKind::Inline(mark) => self.lines.wrap(mark, mark),
            ElementKind::Link(address) => self.lines.wrap("[", &format!("]({address})")),
            ElementKind::List(_) => self.around_list(),
            ElementKind::SetIn => {
                self.lines.set_out();
                self.lines.line();
            }
            ElementKind::Preformatted => self.lines.end_verbatim(),
            ElementKind::Row(cells, is_heading) => {
                if is_heading && cells > 0 {
                    self.lines.line();
                    self.lines.flowing(&vec!["---"; cells].join(" | "));
                }
                self.lines.line();
            }
        }
    }

    fn push(&mut self, name: &str, kind: ElementKind) {
        if let ElementKind::List(_) = kind {
            self.around_list();
        }
        if matches!(kind, ElementKind::Inline(_) | ElementKind::Link(_)) {
            self.lines.begin_inline();
        }
        let name = name.to_owned();
        if self.open.len() < MOST_OPEN {
            self.open.push(OpenElement { name, kind });
        } else {
            // Closed at once: nesting this deep is not readable.
            self.end(OpenElement { name, kind });
        }
    }

    /// Separates a list by an empty line; a nested list only by a line break.
    fn around_list(&mut self) {
        let is_list = |open: &OpenElement| matches!(open.kind, ElementKind::List(_));
        if self.open.iter().any(is_list) {
            self.lines.line();
        } else {
            self.lines.paragraph();
        }
    }

    fn item(&mut self) {
        let is_list = |open: &OpenElement| matches!(open.kind, ElementKind::List(_));
        let list = self.open.iter().rposition(is_list);
        // Closes the previous item if it is open, but not one of an outer list.
        let item = self.open.iter().rposition(|open| open.name == "li");
        if let Some(at) = item
            && Some(at) > list
        {
            self.close_down_to(at);
        }
        self.lines.line();
        let list = list.and_then(|at| self.open.get_mut(at));
        let mark = match list.map(|open| &mut open.kind) {
            Some(ElementKind::List(Some(number))) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "- ".to_owned(),
        };
        let blank = " ".repeat(mark.len());
        self.lines.set_in(&mark, &blank);
        self.push("li", ElementKind::SetIn);
    }

    fn cell(&mut self, is_heading: bool) {
        let row = self
            .open
            .iter_mut()
            .rev()
            .find_map(|open| match &mut open.kind {
                ElementKind::Row(cells, all_headings) => Some((cells, all_headings)),
                _ => None,
            });
        let Some((cells, all_headings)) = row else {
            self.lines.line();
            return;
        };
        *cells += 1;
        *all_headings &= is_heading;
        if *cells > 1 {
            self.lines.flowing(" | ");
        }
    }

    fn image(&mut self, tag: &HtmlTag) {
        let text = tag.attribute("alt").unwrap_or_default();
        if text.trim().is_empty() {
            return;
        }
        let address = tag.attribute("src").and_then(|src| self.complete(&src));
        self.lines.begin_inline();
        self.lines.flowing(&text);
        self.lines
            .wrap("![", &format!("]({})", address.unwrap_or_default()));
    }

    fn open_preformatted(&mut self, tag: &HtmlTag) {
        match tag.name.as_str() {
            "br" => self.lines.verbatim("\n"),
            "code" => self.lines.name_language(&language(tag)),
            _ => {}
        }
    }

    fn block(&mut self, name: &str) {
        if self.is_preformatted() {
            return;
        }
        if PARAGRAPHS.contains(&name) {
            self.lines.paragraph();
        } else if LINES.contains(name) {
            self.lines.line();
        }
    }

    fn is_preformatted(&self) -> bool {
        self.open
            .iter()
            .any(|open| matches!(open.kind, ElementKind::Preformatted))
    }

    /// Returns the absolute address of a link, if it leads to another page.
    fn complete(&self, address: &str) -> Option<String> {
        let address = address.trim();
        if address.is_empty() || address.starts_with('#') {
            return None;
        }
        let url = self.base.join(address).ok()?;
        matches!(url.scheme(), "http" | "https" | "mailto").then(|| url.to_string())
    }

    fn finish(mut self) -> WebPage {
        self.close_down_to(0);
        let main = self.main;
        let text = self.lines.finish();
        let main = main.and_then(|(from, end)| text.get(from..end.unwrap_or(text.len())));
        let main = main.map(str::trim).filter(|main| main.len() >= LEAST_MAIN);
        WebPage {
            title: on_one_line(&self.title),
            text: main.unwrap_or(text.trim()).to_owned(),
        }
    }
}

/// Returns the language of code, from the usual class names.
fn language(tag: &HtmlTag) -> String {
    let classes = tag.attribute("class").unwrap_or_default();
    let named = classes.split_whitespace().find_map(|class| {
        class
            .strip_prefix("language-")
            .or_else(|| class.strip_prefix("lang-"))
    });
    let is_plain = |name: &&str| {
        let mut characters = name.chars();
        name.len() <= 20 && characters.all(|c| c.is_ascii_alphanumeric() || "+-#".contains(c))
    };
    named.filter(is_plain).unwrap_or_default().to_owned()
}

/// Returns a piece of HTML as one line of plain text.
pub(crate) fn plain(html: &str) -> String {
    let mut text = String::new();
    for token in tokens(html) {
        if let HtmlToken::Text(part) = token {
            text.push_str(&part);
        }
    }
    on_one_line(&text)
}

fn on_one_line(text: &str) -> String {
    let text = text.replace(|c: char| c.is_control() && !c.is_whitespace(), "");
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests;
