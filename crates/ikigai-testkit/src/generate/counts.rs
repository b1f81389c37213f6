//! Statistics of generated histories, which show if a property test covers enough.

use std::collections::BTreeMap;

/// Numbers of generated rows by property.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Rows by the name of their kind.
    pub kinds: BTreeMap<String, usize>,
    /// All rows.
    pub rows: usize,
    /// Rows that do not load, and rewinds without a valid target.
    pub bad_rows: usize,
    /// Rewinds with a valid target.
    pub rewinds: usize,
    /// Rewinds of these that return to an abandoned branch.
    pub rewinds_to_abandoned: usize,
    /// Forks that inherit something.
    pub forks: usize,
    /// Forks of these whose fork point is in the middle of a response.
    pub forks_in_response: usize,
    /// Calls.
    pub calls: usize,
    /// Calls whose id occurred before in the same history.
    pub repeated_ids: usize,
    /// Calls whose id no provider accepts.
    pub illegal_ids: usize,
    /// Largest number of ancestors of an agent.
    pub depth: usize,
    /// Rows of at least 200 KB.
    pub huge_rows: usize,
}

impl Counts {
    /// Adds the counts of another history.
    pub fn add(&mut self, other: &Self) {
        for (kind, count) in &other.kinds {
            *self.kinds.entry(kind.clone()).or_default() += count;
        }
        self.rows += other.rows;
        self.bad_rows += other.bad_rows;
        self.rewinds += other.rewinds;
        self.rewinds_to_abandoned += other.rewinds_to_abandoned;
        self.forks += other.forks;
        self.forks_in_response += other.forks_in_response;
        self.calls += other.calls;
        self.repeated_ids += other.repeated_ids;
        self.illegal_ids += other.illegal_ids;
        self.depth = self.depth.max(other.depth);
        self.huge_rows += other.huge_rows;
    }

    /// Returns an error that names a property with too few rows.
    pub fn check(&self) -> Result<(), String> {
        for kind in ikigai_core::Kind::ALL {
            if !self.kinds.contains_key(kind.name()) {
                return Err(format!("there is no row of kind `{kind}`"));
            }
        }
        at_least(
            5,
            self.rewinds_to_abandoned,
            self.rewinds,
            "rewinds into abandoned branches",
        )?;
        at_least(
            5,
            self.forks_in_response,
            self.forks,
            "fork points inside a response",
        )?;
        at_least(5, self.repeated_ids, self.calls, "repeated call ids")?;
        at_least(5, self.illegal_ids, self.calls, "illegal call ids")?;
        at_least(2, self.bad_rows, self.rows, "bad rows")?;
        if self.depth < 4 {
            return Err(format!("the depth is only {}", self.depth));
        }
        if self.huge_rows == 0 {
            return Err("there is no huge row".to_owned());
        }
        Ok(())
    }
}

fn at_least(percent: usize, part: usize, all: usize, what: &str) -> Result<(), String> {
    if part > 0 && part * 100 >= all * percent {
        Ok(())
    } else {
        Err(format!("{part} of {all} are {what}, less than {percent} %"))
    }
}
