//! Line writer: collapses white space and indents lines.

/// Longest text, because a small page can produce much.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// Deepest indentation; deeper lines get the same.
const MOST_DEPTH: usize = 12;

/// Text that is being written.
#[derive(Default)]
pub(super) struct TextLines {
    text: String,
    /// Line breaks before the next character.
    breaks: usize,
    /// True if a space comes before the next character.
    has_space: bool,
    /// Prefixes of lines, outermost first.
    margins: Vec<Margin>,
    /// Mark before the next character only.
    mark: Option<String>,
    /// Language of verbatim text that has not begun yet.
    fence: Option<String>,
    /// Starts of texts that will be wrapped, outermost first; none if still empty.
    starts: Vec<Option<usize>>,
}

struct Margin {
    /// Prefix of the first line; none once it is written.
    first: Option<String>,
    further: String,
    /// True if it is written at all.
    is_shown: bool,
}

impl TextLines {
    pub(super) fn is_full(&self) -> bool {
        self.text.len() > MOST_BYTES
    }

    pub(super) fn length(&self) -> usize {
        self.text.len()
    }

    /// Starts a new line before the next text.
    pub(super) fn line(&mut self) {
        self.breaks = self.breaks.max(1);
    }

    /// Starts a new paragraph before the next text.
    pub(super) fn paragraph(&mut self) {
        self.breaks = self.breaks.max(2);
    }

    /// Writes text with any white space collapsed to one space.
    pub(super) fn flowing(&mut self, text: &str) {
        for c in text.chars() {
            if c.is_whitespace() {
                self.has_space = true;
            } else if !is_unfit(c) {
                self.begin();
                self.text.push(c);
            }
        }
    }

    /// Writes text verbatim.
    pub(super) fn verbatim(&mut self, text: &str) {
        let mut text = text;
        if let Some(language) = self.fence.take() {
            text = text.strip_prefix('\n').unwrap_or(text);
            self.begin();
            self.text.push_str("```");
            self.text.push_str(&language);
            self.breaks = 1;
            self.begin();
        }
        for c in text.chars() {
            if c == '\n' {
                self.text.push('\n');
                self.margin();
            } else if c == '\t' || !is_unfit(c) {
                self.text.push(if c == '\u{a0}' { ' ' } else { c });
            }
        }
    }

    /// Starts verbatim text, in this language if it is not empty.
    pub(super) fn begin_verbatim(&mut self, language: &str) {
        self.fence = Some(language.to_owned());
    }

    /// Sets the language of verbatim text that has not begun yet.
    pub(super) fn name_language(&mut self, language: &str) {
        if let Some(fence) = self.fence.as_mut().filter(|fence| fence.is_empty()) {
            language.clone_into(fence);
        }
    }

    /// Ends verbatim text.
    pub(super) fn end_verbatim(&mut self) {
        if self.fence.take().is_none() {
            let is_at_start = self.text.ends_with('\n');
            self.breaks = usize::from(!is_at_start);
            self.begin();
            self.text.push_str("```");
        }
        self.paragraph();
    }

    /// Indents further lines with these prefixes, the first line differently.
    pub(super) fn set_in(&mut self, first: &str, further: &str) {
        self.margins.push(Margin {
            first: Some(first.to_owned()),
            further: further.to_owned(),
            is_shown: self.margins.len() < MOST_DEPTH,
        });
    }

    /// Removes the newest indentation.
    pub(super) fn set_out(&mut self) {
        self.margins.pop();
    }

    /// Puts a mark before the next text.
    pub(super) fn mark(&mut self, mark: String) {
        self.mark = Some(mark);
    }

    /// Removes a mark if no text followed it.
    pub(super) fn unmark(&mut self) {
        self.mark = None;
    }

    /// Starts a text that [`Self::wrap`] will wrap.
    pub(super) fn begin_inline(&mut self) {
        self.starts.push(None);
    }

    /// Puts marks around the text since the newest [`Self::begin_inline`], if there is any.
    pub(super) fn wrap(&mut self, before: &str, after: &str) {
        let Some(from) = self.starts.pop().flatten() else {
            return;
        };
        // Blocks inside of a link are rare; its text then becomes one line.
        if before.ends_with('[')
            && let Some(inside) = self.text.get(from..)
            && inside.contains('\n')
        {
            let words: Vec<_> = inside.split_whitespace().collect();
            let line = words.join(" ");
            self.text.truncate(from);
            self.text.push_str(&line);
        }
        if self.text.is_char_boundary(from) {
            self.text.insert_str(from, before);
            self.text.push_str(after);
        }
    }

    /// Returns the whole text.
    pub(super) fn finish(self) -> String {
        self.text
    }

    /// Writes breaks, prefixes and marks before the next character.
    fn begin(&mut self) {
        if self.breaks > 0 || self.text.is_empty() {
            if !self.text.is_empty() {
                for at in 0..self.breaks {
                    self.text.push('\n');
                    if at + 1 < self.breaks {
                        self.quiet_margin();
                    }
                }
            }
            self.margin();
        } else if self.has_space {
            self.text.push(' ');
        }
        self.breaks = 0;
        self.has_space = false;
        if let Some(mark) = self.mark.take() {
            self.text.push_str(&mark);
        }
        let here = self.text.len();
        for start in self.starts.iter_mut().rev() {
            if start.is_some() {
                break;
            }
            *start = Some(here);
        }
    }

    fn margin(&mut self) {
        for margin in self.margins.iter_mut().filter(|margin| margin.is_shown) {
            match margin.first.take() {
                Some(first) => self.text.push_str(&first),
                None => self.text.push_str(&margin.further),
            }
        }
    }

    /// Writes the prefix of an empty line: marks of open quotations.
    fn quiet_margin(&mut self) {
        let begun = self.margins.iter().filter(|margin| margin.is_shown);
        let begun = begun.take_while(|margin| margin.first.is_none());
        let line: String = begun.map(|margin| margin.further.as_str()).collect();
        self.text.push_str(line.trim_end());
    }
}

/// Returns true for control characters, which are not written.
fn is_unfit(c: char) -> bool {
    c.is_control()
}
