//! Drawing of the blocks of a slice.

use std::borrow::Cow;
use std::sync::Arc;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Parser, Tag, TagEnd};

use super::code;
use super::highlight::Highlighter;
use super::table::MarkdownTable;
use super::{MASK, MarkdownStyle, mask, options};
use crate::line::{TextLine, TextSpan};
use crate::look::{Look, Tone};
use crate::signs::Sign;
use crate::text::{clean, clean_line, cut, wrap};
use crate::width::width;

/// Maximum number of signs before a row, however deep the nesting.
const MOST_NESTED: usize = 12;

/// Longest target of a link.
const MOST_LINK_BYTES: usize = 2048;

/// Maximum length of a horizontal rule.
const MOST_RULE: usize = 40;

/// Appends the blocks of a slice.
pub(super) fn draw(text: &str, style: &MarkdownStyle, lines: &mut Vec<TextLine>) {
    let mut drawing = Drawing {
        style,
        before: lines.len(),
        lines,
        nested: Vec::new(),
        looks: Vec::new(),
        links: Vec::new(),
        spans: Vec::new(),
        wants_gap: true,
        code: None,
        table: None,
    };
    let text = mask(text);
    let mut depth = 0_usize;
    for event in Parser::new_ext(&text, options()) {
        drawing.wants_gap |= depth == 0;
        match &event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        drawing.event(event);
    }
}

/// Restores masked colons and cleans the text again: an entity can encode any character.
fn unmask(text: &str) -> Cow<'_, str> {
    if text.contains(MASK) {
        return Cow::Owned(clean(&text.replace(MASK, ":")).into_owned());
    }
    clean(text)
}

/// Returns an empty row with the signs of its nesting that fit.
pub(super) fn blank(lead: &[TextSpan], width: u16) -> TextLine {
    let line = TextLine {
        lead: lead.len(),
        spans: lead.to_vec(),
        joined: None,
    };
    cut(&line, width, "")
}

/// Block quote, list or list item around a block.
struct Nested {
    /// Sign before its next row, if it has none yet.
    first: Option<TextSpan>,
    /// Lead of all other rows.
    rest: TextSpan,
    /// The number of the next item, if it is an ordered list.
    number: Option<u64>,
    /// It is a list, which has no rows itself.
    is_list: bool,
}

struct Drawing<'a> {
    style: &'a MarkdownStyle,
    lines: &'a mut Vec<TextLine>,
    /// Number of rows before this drawing.
    before: usize,
    nested: Vec<Nested>,
    looks: Vec<Look>,
    links: Vec<Option<Arc<str>>>,
    /// The line so far.
    spans: Vec<TextSpan>,
    /// The next block begins after an empty row.
    wants_gap: bool,
    code: Option<Highlighter>,
    table: Option<MarkdownTable>,
}

impl Drawing<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) => self.text(&text),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.span(&text, Tone::Code);
            }
            Event::InlineHtml(text) => self.span(&text, Tone::Code),
            Event::FootnoteReference(text) => self.span(&format!("[{text}]"), Tone::Text),
            // Models break lines where they want breaks.
            Event::SoftBreak | Event::HardBreak => self.line_break(),
            Event::Rule => self.rule(),
            Event::TaskListMarker(is_done) => {
                let sign = if is_done { Sign::Done } else { Sign::Open };
                let text = format!("{} ", sign.text(self.style.symbols));
                self.span(&text, Tone::Text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.flush();
                let look = Look::of(Tone::Heading).with(Look::BOLD);
                self.looks.push(match level {
                    HeadingLevel::H1 => look.with(Look::UNDERLINE),
                    HeadingLevel::H2 => look,
                    _ => look.with(Look::ITALIC),
                });
            }
            Tag::BlockQuote(_) => {
                self.flush();
                let sign = format!("{} ", Sign::Quote.text(self.style.symbols));
                let sign = TextSpan::new(sign, Tone::Quote);
                self.nest(Some(sign.clone()), sign, None, false);
                self.looks.push(Look::of(Tone::Quote));
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let name = match &kind {
                    CodeBlockKind::Fenced(info) => code::language(info),
                    CodeBlockKind::Indented => "",
                };
                self.code = Some(Highlighter::new(name));
            }
            Tag::List(number) => {
                self.flush();
                // A list within an item follows it closely.
                self.wants_gap &= !self.nested.iter().any(|nested| nested.is_list);
                self.nest(None, TextSpan::default(), number, true);
            }
            Tag::Item => self.item(),
            Tag::Table(alignments) => {
                self.flush();
                self.table = Some(MarkdownTable::new(alignments));
            }
            Tag::Emphasis => self.set_off(Look::ITALIC),
            Tag::Strong => self.set_off(Look::BOLD),
            Tag::Strikethrough => self.set_off(Look::STRIKE),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.link(&dest_url),
            Tag::Paragraph => self.flush(),
            Tag::HtmlBlock
            | Tag::TableHead
            | Tag::TableRow
            | Tag::TableCell
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush();
                self.wants_gap = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.looks.pop();
                self.wants_gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.nested.pop();
                self.looks.pop();
                self.wants_gap = true;
            }
            TagEnd::CodeBlock => {
                self.code = None;
                self.wants_gap = true;
            }
            TagEnd::List(_) => {
                self.nested.pop();
                self.wants_gap = !self.nested.iter().any(|nested| nested.is_list);
            }
            TagEnd::Item => {
                self.flush();
                // An empty item gets its sign as well.
                if self.nested.last().is_some_and(|item| item.first.is_some()) {
                    self.push(Vec::new());
                }
                self.nested.pop();
                self.wants_gap = false;
            }
            TagEnd::TableCell => {
                let spans = std::mem::take(&mut self.spans);
                if let Some(table) = &mut self.table {
                    table.cell(spans);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.row();
                }
            }
            TagEnd::Table => self.draw_table(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.looks.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.looks.pop();
                self.links.pop();
            }
            TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn nest(
        &mut self,
        first: Option<TextSpan>,
        rest: TextSpan,
        number: Option<u64>,
        is_list: bool,
    ) {
        if self.wants_gap {
            self.gap();
        }
        self.nested.push(Nested {
            first,
            rest,
            number,
            is_list,
        });
    }

    fn item(&mut self) {
        self.flush();
        let sign = match self.nested.last_mut().and_then(|list| list.number.as_mut()) {
            Some(number) => {
                let sign = format!("{number}. ");
                *number = number.saturating_add(1);
                sign
            }
            None => format!("{} ", Sign::Bullet.text(self.style.symbols)),
        };
        let rest = TextSpan::new(" ".repeat(width(&sign)), Tone::Text);
        self.wants_gap = false;
        self.nest(Some(TextSpan::new(sign, Tone::Faint)), rest, None, false);
    }

    fn look(&self) -> Look {
        self.looks.last().copied().unwrap_or_default()
    }

    fn set_off(&mut self, way: u8) {
        self.looks.push(self.look().with(way));
    }

    fn link(&mut self, target: &str) {
        // A link must not contain terminal sequences.
        let target = target.replace(MASK, ":");
        let is_fit = target.len() <= MOST_LINK_BYTES && clean_line(&target) == target;
        let look = Look {
            role: Tone::Link,
            set_off: self.look().set_off | Look::UNDERLINE,
        };
        self.links.push(is_fit.then(|| Arc::from(target)));
        self.looks.push(look);
    }

    /// Adds text to the line; a newline in it is a break.
    fn text(&mut self, text: &CowStr<'_>) {
        if let Some(mut highlighter) = self.code.take() {
            self.gap();
            let text = text.strip_suffix('\n').unwrap_or(text);
            for line in text.split('\n') {
                let (lead, rest) = self.leads();
                let line = unmask(line);
                code::draw_line(
                    &line,
                    &mut highlighter,
                    &lead,
                    &rest,
                    self.style.width,
                    self.lines,
                );
            }
            self.code = Some(highlighter);
            return;
        }
        let mut lines = text.split('\n');
        self.span(lines.next().unwrap_or_default(), self.look());
        for line in lines {
            self.line_break();
            self.span(line, self.look());
        }
    }

    fn span(&mut self, text: &str, look: impl Into<Look>) {
        if text.is_empty() {
            return;
        }
        let link = self.links.last().cloned().flatten();
        let base = self.look();
        let mut look = look.into();
        look.set_off |= base.set_off;
        match self.spans.last_mut() {
            Some(last) if last.look == look && last.link == link => {
                last.text.push_str(&unmask(text));
            }
            _ => self.spans.push(TextSpan {
                text: unmask(text).into_owned(),
                look,
                link,
            }),
        }
    }

    fn line_break(&mut self) {
        if self.table.is_some() {
            self.span(" ", self.look());
        } else {
            self.flush();
            self.wants_gap = false;
        }
    }

    /// Ends the line.
    fn flush(&mut self) {
        let spans = std::mem::take(&mut self.spans);
        if spans.iter().all(|span| span.text.trim().is_empty()) {
            return;
        }
        self.gap();
        let spans = spans.into_iter().flat_map(with_links).collect();
        self.push(spans);
    }

    fn push(&mut self, spans: Vec<TextSpan>) {
        let (lead, rest) = self.leads();
        let mut line = TextLine {
            lead: lead.len(),
            spans: lead,
            joined: None,
        };
        line.spans.extend(spans);
        self.lines.extend(wrap(&line, self.style.width, &rest));
        self.wants_gap = false;
    }

    /// Adds an empty row, if one is due.
    fn gap(&mut self) {
        let is_open = self.nested.iter().any(|nested| nested.first.is_some());
        if std::mem::take(&mut self.wants_gap) && !is_open && !self.lines.is_empty() {
            let mut lead = self.style.rest.clone();
            if self.lines.len() > self.before {
                lead.extend(self.nested().map(|nested| nested.rest.clone()));
            }
            self.lines.push(blank(&lead, self.style.width));
        }
    }

    fn nested(&self) -> impl Iterator<Item = &Nested> {
        self.nested
            .iter()
            .filter(|nested| !nested.is_list)
            .take(MOST_NESTED)
    }

    /// Returns the leads of the next row and of its continuations.
    fn leads(&mut self) -> (Vec<TextSpan>, Vec<TextSpan>) {
        let mut lead = self.style.lead(self.lines.len()).to_vec();
        let mut rest = self.style.rest.clone();
        rest.extend(self.nested().map(|nested| nested.rest.clone()));
        let signs = self.nested().map(|nested| {
            let sign = nested.first.as_ref().unwrap_or(&nested.rest);
            sign.clone()
        });
        lead.extend(signs);
        for nested in &mut self.nested {
            nested.first = None;
        }
        (lead, rest)
    }

    fn rule(&mut self) {
        self.flush();
        self.gap();
        let (lead, _) = self.leads();
        let used: usize = lead.iter().map(|span| width(&span.text)).sum();
        let room = usize::from(self.style.width).saturating_sub(used);
        let dash = Sign::Dash.text(self.style.symbols);
        self.spans.clear();
        let mut line = TextLine {
            lead: lead.len(),
            spans: lead,
            joined: None,
        };
        line.spans.push(TextSpan::new(
            dash.repeat(room.clamp(1, MOST_RULE)),
            Tone::Rule,
        ));
        self.lines.push(cut(&line, self.style.width, ""));
        self.wants_gap = true;
    }

    fn draw_table(&mut self) {
        let Some(table) = self.table.take() else {
            return;
        };
        self.gap();
        let (lead, rest) = self.leads();
        let used: usize = rest.iter().map(|span| width(&span.text)).sum();
        let room = usize::from(self.style.width).saturating_sub(used).max(1);
        let mut lead = Some(lead);
        for spans in table.draw(room, self.style.symbols) {
            let lead = lead.take().unwrap_or_else(|| rest.clone());
            let mut line = TextLine {
                lead: lead.len(),
                spans: lead,
                joined: None,
            };
            line.spans.extend(spans);
            self.lines.extend(wrap(&line, self.style.width, &rest));
        }
        self.wants_gap = true;
    }
}

/// Splits a span so that URLs become links.
fn with_links(span: TextSpan) -> Vec<TextSpan> {
    if span.link.is_some() || span.look.role == Tone::Code || !span.text.contains("://") {
        return vec![span];
    }
    let mut pieces = Vec::new();
    let mut rest = span.text.as_str();
    while let Some((before, address)) = next_address(rest) {
        rest = rest.get(before + address..).unwrap_or_default();
        let at = span.text.len() - rest.len() - address;
        let piece = |from: usize, to: usize| span.text.get(from..to).unwrap_or_default();
        let words = piece(at - before, at);
        if !words.is_empty() {
            pieces.push(TextSpan::new(words, span.look));
        }
        let target = piece(at, at + address);
        let look = Look {
            role: Tone::Link,
            set_off: span.look.set_off | Look::UNDERLINE,
        };
        pieces.push(TextSpan {
            text: target.to_owned(),
            look,
            link: (target.len() <= MOST_LINK_BYTES).then(|| Arc::from(target)),
        });
    }
    if !rest.is_empty() {
        pieces.push(TextSpan::new(rest, span.look));
    }
    pieces
}

/// Returns the start and length of the next URL.
fn next_address(text: &str) -> Option<(usize, usize)> {
    let starts = ["https://", "http://"].map(|scheme| text.find(scheme));
    let start = starts.into_iter().flatten().min()?;
    let rest = text.get(start..)?;
    let ends = |character: char| {
        character.is_whitespace() || matches!(character, '<' | '>' | '"' | '`' | '\'' | ')' | ']')
    };
    let address = rest.get(..rest.find(ends).unwrap_or(rest.len()))?;
    let address = address.trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '_']);
    Some((start, address.len().max(1)))
}
