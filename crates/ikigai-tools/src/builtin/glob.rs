//! `glob`: finds files by a path pattern, newest first.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use globset::{GlobBuilder, GlobMatcher};
use ikigai_core::EffectClass;
use ikigai_core::counts::counted;
use ikigai_core::project::{ToolAction, ToolFacts, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use super::walk;
use crate::anchored_file::{MissingDirectories, open_directory};
use crate::arguments::{self, Aliases, BadArguments, ToolArguments};
use crate::files::FileError;
use crate::output::visible;
use crate::paths::Located;
use crate::permission::literal_pattern;
use crate::{CallContext, Output, Place, Prepared, Run, Tool, Touches, paths};

/// Name of the tool.
pub(super) const NAME: &str = "glob";

/// Facts about its calls.
pub(super) const FACTS: ToolFacts = ToolFacts {
    action: ToolAction::Search,
    ..ToolFacts::READING
};

/// Most paths shown.
const MOST_SHOWN: usize = 200;

/// Most matches collected; a pattern with more is of no use.
const MOST_FOUND: usize = 500_000;

/// Long enough for a large tree on a slow disk.
const DEADLINE: Duration = Duration::from_mins(1);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GlobArguments {
    /// Pattern of the paths: `*` stands for any name, `**` for any directories, such as in
    /// `src/**/*.{rs,toml}`.
    pattern: String,
    /// The directory that the pattern starts in; the working directory if not given.
    #[serde(default)]
    path: Option<String>,
}

impl ToolArguments for GlobArguments {
    const ALIASES: Aliases = &[
        ("query", "pattern"),
        ("glob", "pattern"),
        ("file_path", "path"),
        ("directory", "path"),
        ("dir_path", "path"),
    ];
}

pub(super) struct Glob;

impl Tool for Glob {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Finds files by a pattern of their path, newest first, dotfiles \
                          included. Files that .gitignore names are left out, unless the pattern \
                          begins with their directory."
                .to_owned(),
            parameters: arguments::schema_of::<GlobArguments>(),
            facts: FACTS,
        }
    }

    fn prepare(&self, text: &str, place: &Place) -> Result<Prepared, BadArguments> {
        let call = arguments::read::<GlobArguments>(text)?;
        let arguments = call.values;
        let base = arguments.path.as_deref().unwrap_or(".");
        let (start, rest) = literal_start(&arguments.pattern);
        let inner = Place {
            workdir: paths::resolve(place, base),
            hidden: place.hidden.clone(),
        };
        let base = paths::locate_path(place, &paths::resolve(&inner, start))?;
        let matcher = GlobBuilder::new(rest)
            .literal_separator(true)
            .build()
            .map_err(|error| BadArguments(format!("the pattern is not understood: {error}")))?
            .compile_matcher();
        let subject = paths::display_path(place, &base.path);
        Ok(Prepared {
            class: EffectClass::Read,
            touches: Touches::reading([base.path.clone()]),
            shown: call.shown,
            pattern: literal_pattern(&subject),
            subject,
            preview: None,
            deadline: DEADLINE,
            needs: Vec::new(),
            unconfined: None,
            run: Run::Blocking(Box::new(move |context| find(context, &base, &matcher))),
        }
        .with_remark(call.remark))
    }
}

/// Splits a pattern into its literal directories and the rest.
///
/// The search starts in those directories, so that `../other/*.rs`, `/etc/**` and `target/**` work.
/// The last part is always in the rest.
fn literal_start(pattern: &str) -> (&str, &str) {
    let special = pattern
        .find(['*', '?', '[', '{', '\\'])
        .unwrap_or(pattern.len());
    match pattern[..special].rfind('/') {
        Some(slash) => (&pattern[..=slash], &pattern[slash + 1..]),
        None => ("", pattern),
    }
}

fn find(context: &CallContext, base: &Located, matcher: &GlobMatcher) -> Output {
    let place = &context.place;
    let name = paths::display_path(place, &base.path);
    if let Err(reason) = paths::check(place, base) {
        return Output::failed(reason);
    }
    if let Err(error) = open_directory(&base.real, MissingDirectories::Fail) {
        return Output::failed(match FileError::of("read")(error) {
            error @ FileError::Relinked => format!("`{name}` {error}"),
            _ => format!("`{name}` is not a directory"),
        });
    }
    let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
    let mut directories: Vec<PathBuf> = Vec::new();
    let mut anchors = walk::Anchors::default();
    for entry in walk::below(place, base) {
        if context.stop.is_cancelled() || found.len() >= MOST_FOUND {
            break;
        }
        if !matcher.is_match(&entry.inside) {
            continue;
        }
        let Some(changed) = anchors.changed(&entry) else {
            continue;
        };
        if entry.kind.is_dir() {
            directories.push(entry.path);
        } else {
            found.push((changed, entry.path));
        }
    }
    found.sort_unstable_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    let output = answer(place, &found, &directories);
    if context.stop.is_cancelled() {
        return output.cut_short();
    }
    output
}

fn answer(place: &Place, found: &[(SystemTime, PathBuf)], directories: &[PathBuf]) -> Output {
    let count = counted(found.len(), "file");
    let mut body = String::new();
    for (_, path) in found.iter().take(MOST_SHOWN) {
        body.push_str(&visible(paths::display_path(place, path).as_bytes()));
        body.push('\n');
    }
    if found.len() > MOST_SHOWN {
        let more = if found.len() >= MOST_FOUND {
            " or more"
        } else {
            ""
        };
        let _ = writeln!(
            body,
            "[the {MOST_SHOWN} newest of {count}{more}; a narrower pattern shows others]",
        );
    }
    if found.is_empty() {
        body.push_str("no files; those that ignore files name are left out\n");
        if let Some(first) = directories.first() {
            let name = paths::display_path(place, first);
            let _ = writeln!(
                body,
                "[it matches {} directories; `{name}/**` finds what is in the first]",
                directories.len()
            );
        }
    }
    Output::done(body, count)
}
