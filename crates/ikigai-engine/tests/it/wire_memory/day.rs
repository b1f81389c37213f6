//! A day of turns with tool calls: requests keep their prefix, and summaries are rare.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ikigai_core::project::estimate_tokens;
use ikigai_core::{Kind, Row};
use ikigai_engine::{Outcome, UiEvent};
use ikigai_testkit::mock::{MockAnswer, MockRequest};
use ikigai_testkit::wire::prompt::{Prompt, prompt_parts};
use ikigai_testkit::{Dice, cases, tell};

use super::summariser::{is_summary_prompt, write_summary};
use super::support::{MAX_OUTPUT, Wire, is_kind, overflow, run, say, tokens_of};
use crate::support::{TestJob, active_agents, is_stored};

const WINDOW: u64 = 100_000;

/// Fewest tokens of new material between two summaries.
const MATERIAL_PER_SUMMARY: u64 = 50_000;

/// Shares of a day's requests in common with their predecessors.
#[derive(Default)]
struct Figures {
    previous: Option<Previous>,
    requests: usize,
    /// Sum of the shares, in millionths.
    shares: u64,
    /// Sum of the shares of the raw bodies, in millionths.
    raw_shares: u64,
    /// Requests that differ from their predecessor's prefix without a context row between them.
    broken: usize,
    largest: u64,
    refused: usize,
}

struct Previous {
    prompt: String,
    raw: String,
    context_rows: usize,
}

fn shared_bytes(one: &str, other: &str) -> usize {
    let pairs = one.bytes().zip(other.bytes());
    pairs.take_while(|(one, other)| one == other).count()
}

fn millionths(part: usize, whole: usize) -> u64 {
    (part * 1_000_000 / whole.max(1)) as u64
}

impl Figures {
    fn add(&mut self, asked: &MockRequest, context_rows: usize) {
        let prompt = prompt_parts(asked.spoken, &asked.body).concat();
        let raw = asked.body.to_string();
        if let Some(previous) = &self.previous {
            let shared = shared_bytes(&previous.prompt, &prompt);
            let is_whole = shared == previous.prompt.len();
            self.broken += usize::from(previous.context_rows == context_rows && !is_whole);
            self.requests += 1;
            self.shares += millionths(shared, previous.prompt.len());
            let shared = shared_bytes(&previous.raw, &raw);
            self.raw_shares += millionths(shared, previous.raw.len());
        }
        self.previous = Some(Previous {
            prompt,
            raw,
            context_rows,
        });
    }
}

/// One turn of a day: rounds of calls, then an answer.
struct Day {
    dice: Dice,
    rounds: usize,
}

impl Day {
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.dice.below(bound as u64)).unwrap()
    }

    fn text(&mut self, least: u64, most: u64) -> String {
        let words = [
            "the ", "loader ", "reads ", "each ", "row ", "of ", "a ", "page\n",
        ];
        let length = least + self.dice.below(most - least);
        let mut text = String::new();
        while (text.len() as u64) < length {
            text.push_str(words[self.below(words.len())]);
        }
        text
    }

    fn answer(&mut self) -> MockAnswer {
        if self.rounds == 0 {
            self.rounds = 1 + self.below(4);
        }
        self.rounds -= 1;
        if self.rounds == 0 {
            return say(&self.text(400, 1_600));
        }
        let mut commands = Vec::new();
        for _ in 0..=self.dice.below(2) {
            let lines = match self.dice.below(10) {
                0 => 500,
                1..=3 => 120,
                _ => 25,
            };
            commands.push(format!(
                "seq -f 'line %g of an output of a command' 1 {lines}"
            ));
        }
        run(Some("Looking.\n"), &commands)
    }
}

fn is_message(row: &Row) -> bool {
    let kinds = [
        Kind::User,
        Kind::Assistant,
        Kind::ToolCall,
        Kind::ToolResult,
    ];
    kinds.iter().any(|kind| is_kind(row, *kind))
}

/// Counts the tokens of rows that become messages.
fn material(rows: &[Row]) -> u64 {
    let rows = rows.iter().filter(|row| is_message(row));
    let text = |row: &Row| {
        let is_tool = is_kind(row, Kind::ToolCall) || is_kind(row, Kind::ToolResult);
        let text = if is_tool { &row.data } else { &row.content };
        estimate_tokens(text.as_deref().unwrap_or_default())
    };
    rows.map(text).sum()
}

async fn play(dialect: &str, turns: usize) {
    let context_rows = Arc::new(AtomicUsize::new(0));
    let figures = Arc::new(Mutex::new(Figures::default()));
    let mut day = Day {
        dice: Dice::seeded(0x9E37_79B9_7F4A_7C15),
        rounds: 0,
    };
    let (counted, record) = (context_rows.clone(), figures.clone());
    let wire = Wire::new(dialect, WINDOW, move |asked| {
        let mut figures = record.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens = tokens_of(asked) + MAX_OUTPUT;
        figures.largest = figures.largest.max(tokens);
        if tokens > WINDOW {
            figures.refused += 1;
            return overflow(tokens, WINDOW);
        }
        let prompt = Prompt::read(asked.spoken, &asked.body);
        if is_summary_prompt(&prompt) {
            let summary = write_summary(&prompt);
            return say(&format!(
                "{summary}\n{}",
                "The state of the work is good. ".repeat(60)
            ));
        }
        figures.add(asked, counted.load(Ordering::SeqCst));
        day.answer()
    });
    let mut worker = wire.root().await;
    let id = worker.agent().state.agent();
    let mut questions = Day {
        dice: Dice::seeded(0xD1B5_4A32_D192_ED03),
        rounds: 0,
    };
    for turn in 0..turns {
        let text = format!("Question {turn}: {}", questions.text(40, 900));
        let (outcome, _) = active_agents(&mut worker, TestJob::Say(&text), |update: &UiEvent| {
            context_rows.fetch_add(usize::from(is_stored(update, "summary")), Ordering::SeqCst);
            Vec::new()
        })
        .await;
        assert_eq!(outcome.unwrap(), Outcome::Completed, "{dialect} {turn}");
    }

    let rows = wire.world.rows(id).await;
    let summaries = rows.iter().filter(|row| is_kind(row, Kind::Summary));
    let summaries = summaries.filter(|row| row.content.is_some()).count() as u64;
    let material = material(&rows);
    let figures = std::mem::take(&mut *figures.lock().unwrap_or_else(PoisonError::into_inner));
    let requests = figures.requests.max(1) as u64;
    let percent = |sum: u64| {
        let hundredths = sum / requests / 100;
        format!("{}.{:02} %", hundredths / 100, hundredths % 100)
    };
    tell(&format!(
        "{dialect}: {turns} turns, {} requests, {material} tokens of new material, {} context rows, \
         {summaries} summaries; shared prefix {} (raw bodies {}), {} broken; largest {} tokens",
        figures.requests,
        context_rows.load(Ordering::SeqCst),
        percent(figures.shares),
        percent(figures.raw_shares),
        figures.broken,
        figures.largest,
    ));
    assert_eq!(figures.refused, 0, "{dialect}: requests that were too long");
    assert_eq!(
        figures.broken, 0,
        "{dialect}: requests that changed without a row"
    );
    assert!(figures.shares / requests >= 950_000, "{dialect}");
    assert!(summaries * MATERIAL_PER_SUMMARY <= material, "{dialect}");
    assert!(context_rows.load(Ordering::SeqCst) > 0, "{dialect}");
    assert_eq!(wire.mock.faults(), Vec::<String>::new(), "{dialect}");
    let live = wire.world.engine.next_request(id).await.unwrap();
    drop(worker);
    let restarted = wire.world.restarted();
    assert_eq!(restarted.engine.next_request(id).await.unwrap(), live);
}

/// Requests of a day begin with the bytes of the previous one. They share 95 % on average, and all
/// of it between two context rows. There is at most one summary per 50k tokens of new material. The
/// comparison ignores Anthropic's cache marks, which move by design.
#[tokio::test]
async fn a_day_of_requests_keeps_its_prefix() {
    let is_long = cases(0, 1) == 1;
    let turns = if is_long { 500 } else { 34 };
    play("chat", turns).await;
    play("messages", turns).await;
    if is_long {
        play("responses", turns).await;
        play("gemini", turns).await;
    }
}
