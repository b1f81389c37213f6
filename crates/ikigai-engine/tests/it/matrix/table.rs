//! Table of crash points with the expected rows and outcomes.

use super::life::{AgentJob, Life};
use super::scenario::Scenario;

/// Killed lives on one ground, and the expectations on the next process.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) scenario: Scenario,
    pub(crate) lives: Vec<Life>,
    /// Rows of the turn before the restart.
    pub(crate) found: String,
    /// Rows that settlement adds.
    pub(crate) settled: String,
    /// Number of effects; `None` if it depends on timing.
    pub(crate) effects: Option<usize>,
    /// Effect of a resume.
    pub(crate) then: Then,
}

/// Effect of a resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// There is no turn to resume.
    Nothing,
    /// The turn ends; no effect happens again.
    Resumes,
    /// The call that awaited approval is asked about again and runs; the turn ends.
    Happens,
}

/// Columns: scenario | lives | rows found | rows settled | effects | effect of a resume. Every
/// point is the end of some life. `called` stands for `user assistant tool_call usage`, `calls` for
/// the same with four calls, `result` for `tool_result`, `crash` for `interrupted:crash`.
const CASES: &str = "
Text     | Say before the message is stored    |                       |                             | 0 | Nothing
Text     | Say after the message is stored     | user                  | crash                       | 0 | Resumes
Text     | Say before the request              | user                  | crash                       | 0 | Resumes
Text     | Say after the request               | user                  | crash                       | 0 | Resumes
Text     | Say at the first words              | user                  | crash                       | 0 | Resumes
Text     | Say before the draft is stored      | user                  | crash                       | 0 | Resumes
Text     | Say after the draft is stored       | user                  | assistant:interrupted crash | 0 | Resumes
Text     | Say before the answer is stored     | user                  | assistant:interrupted crash | 0 | Resumes
Text     | Say after the answer is stored      | user assistant usage  |                             | 0 | Nothing
Call     | Say before the answer is stored     | user                  | crash                       | 0 | Resumes
Call     | Say after the answer is stored      | called                | result:interrupted crash    | 0 | Resumes
Call     | Say before the call is journalled   | called                | result:interrupted crash    | 0 | Resumes
Call     | Say after the call is journalled    | called                | result:unknown crash        | 0 | Resumes
Call     | Say after the call is started       | called                | result:unknown crash        |   | Resumes
Call     | Say before the result is stored     | called                | result:unknown crash        | 1 | Resumes
Call     | Say after the result is stored      | called result:ran     | crash                       | 1 | Resumes
Parallel | Say before the call is journalled   | calls | result:interrupted result:interrupted result:interrupted result:interrupted crash | 0 | Resumes
Parallel | Say after the call is journalled    | calls | result:interrupted result:unknown result:unknown result:interrupted crash         | 0 | Resumes
Blob     | Say before the blob is stored       | called                | result:unknown crash        | 1 | Resumes
Blob     | Say after the blob is stored        | called                | result:unknown crash        | 1 | Resumes
Question | Say before the permission is stored | called                | crash                       | 0 | Happens
Question | Say after the permission is stored  | called command:answer | result:interrupted crash    | 0 | Resumes
Refused  | Say before the result is stored     | called                | result:interrupted crash    | 0 | Resumes
Refused  | Say after the result is stored      | called result:refused | crash                       | 0 | Resumes
Queue    | Say before the message is queued    | user                  | crash                       | 0 | Resumes
Queue    | Say after the message is queued     | user                  | crash                       | 0 | Resumes
Queue    | Say before the queue is taken in    | user assistant usage  |                             | 0 | Nothing
Queue    | Say after the queue is taken in     | user assistant usage user | crash                   | 0 | Resumes
Stop     | Say before the stop is stored       | called                | result:unknown crash        | 1 | Resumes
Stop     | Say after the stop is stored        | called result:interrupted interrupted:user |        | 1 | Resumes
Limit    | Say before the failure is stored    | called result:ran     | crash                       | 1 | Resumes
Limit    | Say after the failure is stored     | called result:ran error |                           | 1 | Resumes
Cut      | Say before the window is cut        | user                  | crash                       | 0 | Resumes
Cut      | Say after the window is cut         | user summary          | crash                       | 0 | Resumes
Elide    | Say before the elision is stored    | called result:ran assistant tool_call usage result:ran assistant tool_call usage result:ran | crash | 3 | Resumes
Elide    | Say after the elision is stored     | called result:ran assistant tool_call usage result:ran assistant tool_call usage result:ran summary | crash | 3 | Resumes
InnerSummary | Say before the summary is stored | called result:ran assistant tool_call usage result:ran assistant tool_call usage result:ran | crash | 3 | Resumes
InnerSummary | Say after the summary is stored | called result:ran assistant tool_call usage result:ran assistant tool_call usage result:ran usage summary | crash | 3 | Resumes
InnerCut | Say before the window is cut | called result:ran assistant tool_call usage result:ran assistant tool_call usage result:ran | crash | 3 | Resumes
InnerCut | Say after the window is cut | called result:ran assistant tool_call usage result:ran assistant tool_call usage result:ran summary | crash | 3 | Resumes
Fork     | Say before the fork is stored       | called                | result:interrupted crash    | 0 | Resumes
Fork     | Say after the fork is stored        | called fork result:ran | crash                      | 0 | Resumes
Kill     | Say before the kill is stored       | called                | result:interrupted crash    | 0 | Resumes
Kill     | Say after the kill is stored        | called agent_killed result:ran | crash              | 0 | Resumes
Send     | Say before the mail is sent         | called                | result:interrupted crash    | 0 | Resumes
Send     | Say after the mail is sent          | called result:ran     | crash                       | 0 | Resumes
Wait     | Say before the wait is answered     | user assistant tool_call tool_call usage fork result:ran | result:ran crash | 0 | Resumes
Wait     | Say after the wait is answered      | user assistant tool_call tool_call usage fork result:ran result:ran | crash | 0 | Resumes
Summary  | Say before the summary is stored    | user assistant usage  |                             | 0 | Nothing
Summary  | Say after the summary is stored     | user assistant usage usage summary |                | 0 | Nothing
Call     | Say before the result is stored, Open before the settlement is stored   | called | result:unknown crash | 1 | Resumes
Call     | Say before the result is stored, Open after the settlement is stored    | called result:unknown crash |  | 1 | Resumes
Call     | Say before the result is stored, Resume before the resumption is stored | called result:unknown crash |  | 1 | Resumes
Call     | Say before the result is stored, Resume after the resumption is stored  | called result:unknown crash command:resume | crash | 1 | Resumes
Call     | Say before the result is stored, Retry before the retry is stored       | called result:unknown crash |  | 1 | Resumes
Call     | Say before the result is stored, Retry after the retry is stored        | called result:unknown crash rewind | crash | 1 | Resumes
Question | Say before the permission is stored, Resume before the permission is stored | called crash command:resume | crash | 0 | Happens
";

/// Parses all cases.
pub(crate) fn cases() -> Vec<Case> {
    CASES.trim().lines().map(case).collect()
}

fn case(line: &str) -> Case {
    let fields: Vec<_> = line.split('|').map(str::trim).collect();
    let [scenario, lives, found, settled, effects, then] = fields[..] else {
        panic!("six fields: {line}")
    };
    let of_word = |one: &Then| format!("{one:?}") == then;
    let thens = [Then::Nothing, Then::Resumes, Then::Happens];
    Case {
        scenario: Scenario::from_name(scenario).unwrap(),
        lives: lives.split(", ").map(life).collect(),
        found: spelled_out(found),
        settled: spelled_out(settled),
        effects: effects.parse().ok(),
        then: thens.into_iter().find(of_word).unwrap(),
    }
}

fn life(text: &str) -> Life {
    let (job, point) = text.split_once(' ').unwrap();
    let point = point.parse().unwrap();
    Life::until(AgentJob::from_name(job).unwrap(), point)
}

fn spelled_out(rows: &str) -> String {
    let four = "tool_call tool_call tool_call tool_call";
    let words = rows.split(' ').map(|word| match word.split_once(':') {
        Some(("result", verdict)) => format!("tool_result:{verdict}"),
        None if word == "called" => "user assistant tool_call usage".to_owned(),
        None if word == "calls" => format!("user assistant {four} usage"),
        None if word == "crash" => "interrupted:crash".to_owned(),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}
