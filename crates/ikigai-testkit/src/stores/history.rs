//! History of a generated store: turns with tools, and control rows between them.

use ikigai_core::data::{Amounts, SystemOrigin, UsageData, Via};
use ikigai_core::{AgentId, Event, RowRef, Seq};
use serde_json::{Map, json};

use crate::IdSource;

const WORDS: [&str; 48] = [
    "the", "agent", "reads", "file", "and", "writes", "test", "that", "fails", "because", "store",
    "is", "not", "there", "yet", "so", "we", "look", "at", "function", "which", "returns", "error",
    "when", "path", "has", "no", "root", "let", "me", "check", "what", "happens", "if", "row",
    "came", "first", "module", "build", "with", "warning", "unused", "variable", "line", "of",
    "code", "should", "change",
];

/// Generator of turns.
pub(super) struct TurnGenerator {
    agent: AgentId,
    rows: u64,
    control: u64,
    random: IdSource,
    response: u64,
    made: u64,
    bytes: usize,
    rewinds: u64,
    returns: u64,
    /// The last row of each turn on the path, oldest first.
    turns: Vec<Seq>,
    left: Option<Left>,
}

/// A branch that the newest rewind abandoned.
struct Left {
    /// Number of turns that it shares.
    shared: usize,
    turns: Vec<Seq>,
    head: Seq,
}

impl TurnGenerator {
    pub(super) fn new(agent: AgentId, rows: u64, control: u64) -> Self {
        Self {
            agent,
            rows,
            control,
            random: IdSource::new(rows ^ control),
            response: 0,
            made: 0,
            bytes: 0,
            rewinds: 0,
            returns: 0,
            turns: Vec::new(),
            left: None,
        }
    }

    /// Returns the events after `head`: a control row if one is due, else a turn.
    pub(super) fn next(&mut self, head: Seq) -> Vec<Event> {
        let events = if head == Seq(0) {
            self.made = 2;
            vec![self.system(), Self::set("start", 0)]
        } else if self.made * self.rows < self.control * head.0 {
            self.made += 1;
            vec![self.control_row(head)]
        } else {
            let turn = self.turn(head);
            self.turns.push(Seq(head.0 + turn.len() as u64));
            turn
        };
        for event in &events {
            let row = event.clone().into_row(self.agent, ikigai_core::Micros(0));
            let length = |part: Option<String>| part.map_or(0, |text| text.len());
            self.bytes += length(row.content) + length(row.data);
        }
        events
    }

    /// Describes the generated history.
    pub(super) fn told(&self, head: Seq) -> String {
        let average = self.bytes as u64 / head.0.max(1);
        format!(
            "{head} rows of {average} bytes, {} of them control rows, {} rewinds, {} of them into \
             branches that were left",
            self.made, self.rewinds, self.returns
        )
    }

    fn control_row(&mut self, head: Seq) -> Event {
        // An agent that rewinds all the time does hardly anything else.
        let bent = self.control * 20 > self.rows;
        match (self.made % 10, bent) {
            (0 | 3, false) | (0 | 2 | 4 | 6, true) => self.rewind(head),
            (1, false) | (7, true) => self.go_back(head),
            (5, false) => Self::set("model", self.made),
            (7, false) => self.summary(),
            (9, _) => self.seldom(head, bent),
            _ => self.mark(),
        }
    }

    fn seldom(&mut self, head: Seq, bent: bool) -> Event {
        match self.made / 10 % 10 {
            1 if head.0 * 2 < self.rows => {
                self.turns.clear();
                self.left = None;
                Event::Clear
            }
            2..=4 if bent => Self::set("model", self.made),
            5 if bent => self.summary(),
            6..=9 if bent => self.mark(),
            _ => self.system(),
        }
    }

    fn at(&self, seq: Seq) -> RowRef {
        RowRef::new(self.agent, seq)
    }

    /// Rewinds one to three turns.
    fn rewind(&mut self, head: Seq) -> Event {
        let gone = 1 + self.below(3);
        let Some(shared) = self.turns.len().checked_sub(gone).filter(|it| *it > 0) else {
            return self.mark();
        };
        self.rewinds += 1;
        let turns = self.turns.split_off(shared);
        self.left = Some(Left {
            shared,
            turns,
            head,
        });
        let target = self.at(self.turns[shared - 1]);
        Event::rewind(target, self.at(head), Via::Undo)
    }

    /// Returns to the branch that was abandoned last.
    fn go_back(&mut self, head: Seq) -> Event {
        let Some(left) = self.left.take() else {
            return self.mark();
        };
        self.rewinds += 1;
        self.returns += 1;
        self.turns.truncate(left.shared);
        self.turns.extend(left.turns);
        Event::rewind(self.at(left.head), self.at(head), Via::Redo)
    }

    fn mark(&self) -> Event {
        Event::mark(Some(&format!("place {}", self.made)))
    }

    fn system(&self) -> Event {
        Event::system(self.text(500), SystemOrigin::Typed)
    }

    fn set(command: &str, number: u64) -> Event {
        let mut set = Map::new();
        let model = format!("model-{}", number % 7);
        set.insert(
            "model".to_owned(),
            json!({"provider": "demo", "model": model}),
        );
        Event::set(command, set)
    }

    /// Summarises a few turns that are not the newest.
    fn summary(&self) -> Event {
        match self.turns.as_slice() {
            [.., from, _, to, _, _, _] => {
                Event::summary(Some(&self.text(400)), self.at(*from), self.at(*to))
            }
            _ => self.mark(),
        }
    }

    /// Makes a turn: a question, some tool calls, an answer and its usage.
    fn turn(&mut self, head: Seq) -> Vec<Event> {
        let mut turn = vec![Event::user(self.text(350))];
        for _ in 0..=self.below(3) {
            self.response += 1;
            let number = self.response;
            let id = format!("call_{number:08}");
            turn.push(Event::assistant(number, self.text(250)));
            let arguments =
                json!({"path": format!("src/module_{number}.rs"), "text": self.text(400)});
            turn.push(Event::tool_call(
                number,
                &*id,
                "edit",
                arguments.to_string(),
            ));
            let call = self.at(Seq(head.0 + turn.len() as u64));
            turn.push(Event::tool_result(call, &*id, "edit", self.text(650), true));
        }
        self.response += 1;
        turn.push(Event::assistant(self.response, self.text(600)));
        turn.push(Event::Usage(self.usage()));
        turn
    }

    fn usage(&self) -> UsageData {
        let amounts = Amounts {
            input: Some(self.random.bits() % 20_000),
            cache_read: Some(self.random.bits() % 100_000),
            output: Some(self.random.bits() % 2_000),
            cost_nano_usd: Some(self.random.bits() % 100_000_000),
            ..Amounts::default()
        };
        UsageData {
            response: Some(self.response),
            provider: Some("demo".to_owned()),
            model: Some("echo".to_owned()),
            sum: Some(amounts.clone()),
            amounts,
        }
    }

    fn below(&self, bound: u64) -> usize {
        usize::try_from(self.random.bits() % bound).unwrap()
    }

    /// Generates about this many bytes of words.
    fn text(&self, bytes: usize) -> String {
        let wanted = bytes / 2 + self.below(bytes as u64);
        let mut text = String::with_capacity(wanted + 16);
        while text.len() < wanted {
            text.push_str(WORDS[self.below(WORDS.len() as u64)]);
            text.push(' ');
        }
        text
    }
}
