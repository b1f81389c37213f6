//! Completion: what can stand where the cursor is. Pure, so that every screen has the same.

use super::line::command_word;
use super::{COMMANDS, Command, Completes};

/// What there is to choose from. Whoever asks fills in what [`wanted`] says.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Labels of marks, the newest first.
    pub marks: Vec<String>,
    /// Names of agents.
    pub agents: Vec<String>,
    /// Names of models.
    pub models: Vec<String>,
    /// Names of tools.
    pub tools: Vec<String>,
    /// Files of the directory that is being typed, as they would be typed; directories end with `/`.
    pub paths: Vec<String>,
    /// Files that are pinned.
    pub pins: Vec<String>,
}

/// What is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What it can be completed to.
    pub what: Completes,
    /// What of it is typed.
    pub typed: String,
    /// Where in the line it begins, in bytes.
    pub from: usize,
}

/// Something that can be put in place of what was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What is put there.
    pub text: String,
    /// What it is.
    pub help: &'static str,
}

/// What stands at the cursor, a place in the line in bytes; none if nothing completes there.
pub fn wanted(line: &str, cursor: usize) -> Option<Wanted> {
    let before = line.get(..cursor)?;
    if before.starts_with('/') && !before.contains(char::is_whitespace) {
        let typed = before.get(1..)?.to_owned();
        let is_name = typed.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
        return is_name.then_some(Wanted {
            what: Completes::Commands,
            typed,
            from: 1,
        });
    }
    let word_at = before.rfind(char::is_whitespace).map_or(0, |at| {
        at + before[at..].chars().next().map_or(0, char::len_utf8)
    });
    let word = &before[word_at..];
    if let Some((name, rest)) = command_word(before) {
        let command = Command::find(name)?;
        let index = rest[..rest.len() - word.len()].split_whitespace().count();
        let last = command.completes.last();
        let what = *command.completes.get(index).or(last)?;
        // A pin is taken away by a sign before its path.
        let sign = usize::from(what == Completes::Paths && word.starts_with('-'));
        return (what != Completes::Nothing).then(|| Wanted {
            what: if sign == 1 { Completes::Pins } else { what },
            typed: word[sign..].to_owned(),
            from: word_at + sign,
        });
    }
    let typed = word.strip_prefix('@')?;
    Some(Wanted {
        what: Completes::Paths,
        typed: typed.to_owned(),
        from: word_at + 1,
    })
}

/// What the word at the cursor can be completed to: what begins so first, then what has the typed
/// letters in their order.
pub fn complete(line: &str, cursor: usize, context: &Context) -> Vec<Candidate> {
    let Some(wanted) = wanted(line, cursor) else {
        return Vec::new();
    };
    let plain = |texts: &[String]| -> Vec<Candidate> {
        let candidate = |text: &String| Candidate {
            text: text.clone(),
            help: "",
        };
        texts.iter().map(candidate).collect()
    };
    let all = match wanted.what {
        Completes::Nothing => Vec::new(),
        Completes::Commands => commands(),
        Completes::Marks => plain(&context.marks),
        Completes::Agents => plain(&context.agents),
        Completes::Models => plain(&context.models),
        Completes::Tools => plain(&context.tools),
        Completes::Paths => plain(&context.paths),
        Completes::Directories => {
            let mut paths = plain(&context.paths);
            paths.retain(|path| path.text.ends_with('/'));
            paths
        }
        Completes::Pins => plain(&context.pins),
        Completes::Words(words) => {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            plain(&words)
        }
    };
    let (first, rest): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|candidate| candidate.text.starts_with(&wanted.typed));
    let fuzzy = rest
        .into_iter()
        .filter(|candidate| has_in_order(&candidate.text, &wanted.typed));
    first.into_iter().chain(fuzzy).collect()
}

fn commands() -> Vec<Candidate> {
    let candidates = COMMANDS.iter().flat_map(|command| {
        let names = [command.name]
            .into_iter()
            .chain(command.aliases.iter().copied());
        names.map(|name| Candidate {
            text: name.to_owned(),
            help: command.help,
        })
    });
    candidates.collect()
}

/// Says whether a text has these letters in this order.
fn has_in_order(text: &str, letters: &str) -> bool {
    let mut left = text.chars().flat_map(char::to_lowercase);
    letters
        .chars()
        .flat_map(char::to_lowercase)
        .all(|letter| left.any(|c| c == letter))
}

#[cfg(test)]
mod tests;
