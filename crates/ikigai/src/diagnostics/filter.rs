//! Filter of log events by `RUST_LOG`, for targets of this program.

use ikigai_providers::transport::BODIES;
use tracing::Level;
use tracing::level_filters::LevelFilter;

/// Prefix of our targets. Other crates may log secrets, so they are excluded.
const OWN: &str = "ikigai";

/// Filter of events.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Filter {
    /// Prefixes of targets with their levels.
    levels: Vec<(String, LevelFilter)>,
    bodies: bool,
}

impl Filter {
    /// Parses `RUST_LOG`: levels, or `target=level`, separated by commas.
    ///
    /// Skips directives that it does not understand, because other programs use the variable too.
    /// Returns none if nothing is to be logged. Bodies are logged only with `bodies`, which alone
    /// enables all levels.
    pub(super) fn of(rust_log: Option<&str>, bodies: bool) -> Option<Self> {
        let default = if bodies { "trace" } else { "off" };
        let directives = rust_log.unwrap_or(default).split(',').map(str::trim);
        let directives = directives.filter(|text| !text.is_empty());
        let mut levels: Vec<_> = directives.filter_map(directive).collect();
        // The longest matching prefix decides, and of equal ones the last.
        levels.reverse();
        levels.sort_by_key(|(target, _)| std::cmp::Reverse(target.len()));
        let is_silent = |(_, level): &(String, LevelFilter)| *level == LevelFilter::OFF;
        (bodies || !levels.iter().all(is_silent)).then_some(Self { levels, bodies })
    }

    /// Returns true if an event is logged.
    pub(super) fn takes(&self, target: &str, level: Level) -> bool {
        if target == BODIES {
            return self.bodies;
        }
        let mut levels = self.levels.iter();
        let most = levels.find(|(beginning, _)| target.starts_with(beginning));
        target.starts_with(OWN) && most.is_some_and(|(_, most)| level <= *most)
    }

    /// Returns the most verbose level that is logged.
    pub(super) fn most(&self) -> LevelFilter {
        let bodies = self.bodies.then_some(LevelFilter::TRACE);
        let levels = self.levels.iter().map(|(_, level)| *level).chain(bodies);
        levels.max().unwrap_or(LevelFilter::OFF)
    }
}

fn directive(text: &str) -> Option<(String, LevelFilter)> {
    let (target, level) = match text.split_once('=') {
        Some((target, level)) => (target.trim(), level.trim().parse().ok()?),
        None => match text.parse() {
            Ok(level) => ("", level),
            Err(_) => (text, LevelFilter::TRACE),
        },
    };
    // `[span]` and `{field}` are not supported.
    let is_target = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let is_ours = target.is_empty() || target.starts_with(OWN);
    (is_ours && target.chars().all(is_target)).then(|| (target.to_owned(), level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_says_what_is_written() {
        let transport = "ikigai_providers::transport";
        let cases = [
            ("debug", transport, Level::DEBUG, true),
            ("debug", transport, Level::TRACE, false),
            ("INFO", "ikigai_engine", Level::INFO, true),
            ("debug", "h2::codec", Level::DEBUG, false),
            ("h2=trace", transport, Level::ERROR, false),
            ("ikigai_providers=debug", transport, Level::DEBUG, true),
            (
                "ikigai_providers=debug",
                "ikigai_engine",
                Level::ERROR,
                false,
            ),
            ("ikigai_providers", transport, Level::TRACE, true),
            (
                "warn, ikigai_providers=debug",
                transport,
                Level::DEBUG,
                true,
            ),
            ("ikigai_providers=off,trace", transport, Level::ERROR, false),
            ("warn,info", transport, Level::INFO, true),
            ("ikigai=loud,info", transport, Level::INFO, true),
            ("trace", BODIES, Level::TRACE, false),
            (
                "ikigai_providers::bodies=trace",
                BODIES,
                Level::TRACE,
                false,
            ),
        ];

        for (variable, target, level, taken) in cases {
            let filter = Filter::of(Some(variable), false);
            let takes = filter.is_some_and(|filter| filter.takes(target, level));
            assert_eq!(takes, taken, "{variable}: {target} {level}");
        }
    }

    #[test]
    fn nothing_is_asked_for_by_silence() {
        for variable in [
            None,
            Some("off"),
            Some("hyper=debug"),
            Some("ikigai=loud"),
            Some(","),
        ] {
            assert_eq!(Filter::of(variable, false), None, "{variable:?}");
        }
    }

    #[test]
    fn bodies_are_asked_for_by_themselves() {
        for variable in [None, Some("off"), Some("info")] {
            let filter = Filter::of(variable, true).unwrap();

            assert!(filter.takes(BODIES, Level::TRACE), "{variable:?}");
            assert_eq!(filter.most(), LevelFilter::TRACE);
            assert!(!filter.takes("hyper::proto", Level::ERROR));
        }
    }
}
