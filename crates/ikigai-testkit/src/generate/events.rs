//! Events without a constructor in the program.

use ikigai_core::data::{
    AgentKilledData, Amounts, Category, CommandData, Elide, ErrorData, KilledBy, Merge, Shell,
    StoredImage, SummaryData, UsageData, UserData, UserOrigin,
};
use ikigai_core::{AgentId, Event, RowRef, Seq};
use serde_json::{Map, Value};

use super::action::{ContextForm, Saying};

pub(super) fn user(text: String, how: Saying, agent: AgentId) -> Event {
    let mut data = UserData {
        origin: Some(UserOrigin::Typed),
        ..UserData::default()
    };
    match how {
        Saying::Typed => {}
        Saying::Expanded => {
            data.typed = Some("@file".to_owned());
            data.images = Some(images());
        }
        Saying::Mail => {
            data.origin = Some(UserOrigin::Mail);
            data.from = Some(agent);
        }
        Saying::Shell => {
            data.shell = Some(Shell {
                command: Some("ls".to_owned()),
                exit: Some(0),
            });
        }
        Saying::Merge => {
            data.merge = Some(Merge {
                agent: Some(agent),
                from: Some(Seq(1)),
                to: Some(Seq(2)),
            });
        }
    }
    Event::User { text, data }
}

/// Returns an image, and one that has no hash.
pub(super) fn images() -> Vec<StoredImage> {
    let image = StoredImage {
        hash: Some("ab".repeat(32)),
        r#type: Some("image/png".to_owned()),
        bytes: Some(1_000),
        width: Some(800),
        height: Some(600),
    };
    let without_hash = StoredImage {
        hash: None,
        ..image.clone()
    };
    vec![image, without_hash]
}

pub(super) fn error(text: String, omit: Option<Vec<RowRef>>) -> Event {
    let category = if omit.is_some() {
        Category::Omitted
    } else {
        Category::Provider
    };
    let data = ErrorData {
        category: Some(category),
        omit,
        ..ErrorData::default()
    };
    Event::Error { text, data }
}

pub(super) fn command(
    set: Option<Map<String, Value>>,
    echo: Option<String>,
    resume: bool,
    output: Option<String>,
) -> Event {
    let data = CommandData {
        command: Some("command".to_owned()),
        set,
        echo,
        resume: resume.then_some(true),
        ..CommandData::default()
    };
    Event::Command { output, data }
}

pub(super) fn killed(target: AgentId, others: Vec<AgentId>) -> Event {
    Event::AgentKilled(AgentKilledData {
        target: Some(target),
        killed: Some(std::iter::once(target).chain(others).collect()),
        by: Some(KilledBy::User),
    })
}

pub(super) fn usage(tokens: u64) -> Event {
    let amounts = Amounts {
        input: Some(tokens),
        cache_read: Some(tokens),
        output: Some(tokens),
        ..Amounts::default()
    };
    Event::Usage(UsageData {
        response: Some(1),
        amounts: amounts.clone(),
        sum: Some(amounts),
        ..UsageData::default()
    })
}

/// Makes a `summary` row of any form. Kept messages begin at the first row of the range.
pub(super) fn context_row(
    text: Option<String>,
    from: RowRef,
    to: RowRef,
    form: ContextForm,
) -> Event {
    let mut data = SummaryData {
        from: Some(from),
        to: Some(to),
        ..SummaryData::default()
    };
    let text = match form {
        ContextForm::Plain => text,
        ContextForm::Verbatim => {
            data.verbatim_from = Some(from);
            text
        }
        ContextForm::Elide => {
            data.elide = Some(Elide {
                head: Some(1),
                tail: Some(2),
            });
            None
        }
        ContextForm::Cut => {
            data.verbatim_from = Some(from);
            data.cut = Some(true);
            None
        }
    };
    Event::Summary { text, data }
}

pub(super) fn take_back(undone: RowRef, names_range: bool) -> Event {
    let range = names_range.then_some(undone);
    let data = SummaryData {
        from: range,
        to: range,
        undo: Some(undone),
        ..SummaryData::default()
    };
    Event::Summary { text: None, data }
}
