//! Unified diffs of recorded states, in the form that `git apply` takes.

use std::fmt::Write as _;

use ikigai_core::data::{FileKind, FileVersion};

use crate::diff;

/// Marks the content of one side as unknown.
const LOST: &str = "content was not kept";

/// One path of a patch.
#[derive(Clone, Debug)]
pub struct FilePatch<'a> {
    /// Path below the top directory.
    pub name: &'a str,
    /// State before, and its content if it is a regular file.
    pub before: (&'a FileVersion, Option<&'a [u8]>),
    /// State after, and its content if it is a regular file.
    pub after: (&'a FileVersion, Option<&'a [u8]>),
}

/// Text of a patch, with counted lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchText {
    /// The patch.
    pub text: String,
    /// Number of added lines.
    pub added: u64,
    /// Number of removed lines.
    pub removed: u64,
}

/// Side of a path as git knows it: files and links only.
struct PatchSide<'a> {
    mode: &'static str,
    content: Option<&'a [u8]>,
}

impl FilePatch<'_> {
    /// Returns the patch of the path; empty if git sees no difference.
    pub fn text(&self) -> PatchText {
        let (before, after) = (side(self.before), side(self.after));
        let is_link =
            |side: &Option<PatchSide<'_>>| side.as_ref().is_some_and(|side| side.mode == LINK);
        let mut patch = PatchText::default();
        match (&before, &after) {
            (None, None) => {}
            (Some(_), Some(_)) if is_link(&before) != is_link(&after) => {
                // Git has no patch that changes the type of a file.
                self.add(before.as_ref(), None, &mut patch);
                self.add(None, after.as_ref(), &mut patch);
            }
            (before, after) => self.add(before.as_ref(), after.as_ref(), &mut patch),
        }
        patch
    }

    fn add(
        &self,
        before: Option<&PatchSide<'_>>,
        after: Option<&PatchSide<'_>>,
        patch: &mut PatchText,
    ) {
        let content = |side: Option<&PatchSide<'_>>| match side {
            None => Some(Vec::new()),
            Some(side) => side.content.map(<[u8]>::to_vec),
        };
        let (old, new) = (content(before), content(after));
        let modes = (before.map(|side| side.mode), after.map(|side| side.mode));
        if modes.0 == modes.1 && old == new {
            return;
        }
        let (a, b) = (quoted("a/", self.name), quoted("b/", self.name));
        let text = &mut patch.text;
        // Writing to a string does not fail.
        let _ = writeln!(text, "diff --git {a} {b}");
        let _ = match modes {
            (None, Some(mode)) => writeln!(text, "new file mode {mode}"),
            (Some(mode), None) => writeln!(text, "deleted file mode {mode}"),
            (Some(old), Some(new)) if old != new => {
                writeln!(text, "old mode {old}\nnew mode {new}")
            }
            _ => Ok(()),
        };
        let (Some(old), Some(new)) = (old, new) else {
            let _ = writeln!(text, "# {}: {LOST}", self.name);
            return;
        };
        if old == new {
            return;
        }
        let (Ok(old), Ok(new)) = (std::str::from_utf8(&old), std::str::from_utf8(&new)) else {
            let _ = writeln!(text, "Binary files {a} and {b} differ");
            return;
        };
        if old.contains('\0') || new.contains('\0') {
            let _ = writeln!(text, "Binary files {a} and {b} differ");
            return;
        }
        let from = if before.is_some() {
            a.as_str()
        } else {
            NOWHERE
        };
        let to = if after.is_some() { b.as_str() } else { NOWHERE };
        let _ = writeln!(text, "--- {from}\n+++ {to}");
        let (hunks, added, removed) = diff::hunks(old, new);
        text.push_str(&hunks);
        patch.added += added as u64;
        patch.removed += removed as u64;
    }
}

/// Name of a missing side.
const NOWHERE: &str = "/dev/null";

/// Mode of a symbolic link in git.
const LINK: &str = "120000";

fn side<'a>((version, content): (&'a FileVersion, Option<&'a [u8]>)) -> Option<PatchSide<'a>> {
    let mode = match version.kind()? {
        FileKind::File if version.mode.unwrap_or(0o644) & 0o100 != 0 => "100755",
        FileKind::File => "100644",
        FileKind::Link => {
            return Some(PatchSide {
                mode: LINK,
                content: version.link.as_deref().map(str::as_bytes),
            });
        }
        FileKind::Directory | FileKind::Fifo => return None,
    };
    Some(PatchSide { mode, content })
}

/// Quotes a name as git does, if it has characters that would end it.
fn quoted(prefix: &str, name: &str) -> String {
    let is_plain = |c: char| !c.is_control() && c != '"' && c != '\\';
    if name.chars().all(is_plain) {
        return format!("{prefix}{name}");
    }
    let mut text = format!("\"{prefix}");
    for character in name.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c if c.is_control() => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(text, "\\{byte:03o}");
                }
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}
