//! Names and ids of calls that every provider accepts.

use std::collections::HashSet;

use crate::ids::RowRef;

/// Gives every call of a request an id that every provider accepts.
#[derive(Default)]
pub(crate) struct CallIds {
    used: HashSet<String>,
}

const LONGEST_NAME: usize = 64;

fn is_legal(name: &str) -> bool {
    let fits = (1..=LONGEST_NAME).contains(&name.len());
    fits && name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

impl CallIds {
    /// Returns the stored id if it can be sent, else one from the reference.
    pub(crate) fn name(&mut self, stored: &str, at: RowRef) -> String {
        let mut id = stored.to_owned();
        let mut attempt = 0_u32;
        while !is_legal(&id) || self.used.contains(&id) {
            id = match attempt {
                0 => format!("{}_{}", at.agent, at.seq),
                again => format!("{}_{}_{again}", at.agent, at.seq),
            };
            attempt += 1;
        }
        self.used.insert(id.clone());
        id
    }
}

/// Makes a tool name that every provider accepts: a model may have invented the tool.
pub(crate) fn legal_name(name: String) -> String {
    if is_legal(&name) {
        return name;
    }
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let spelled: String = name
        .chars()
        .take(LONGEST_NAME)
        .map(|c| if legal(c) { c } else { '_' })
        .collect();
    if spelled.is_empty() {
        "unknown".to_owned()
    } else {
        spelled
    }
}
