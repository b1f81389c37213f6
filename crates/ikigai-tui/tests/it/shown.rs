//! The screen without a terminal: keys go in, text comes out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_core::data::{self, CommandData};
use ikigai_core::{AgentId, Direction, Kind, PageQuery, Seq, Span};
use ikigai_engine::{Engine, System};
use ikigai_providers::registry::Registry;
use ikigai_providers::transport::{Client, Deadlines};
use ikigai_testkit::{IdSource, MemoryStore};
use ikigai_tui::app::{Surroundings, Wish};
use ikigai_tui::key::{Deed, Happening, Key, Mouse};
use ikigai_tui::keys::Bindings;
use ikigai_tui::paint::Grid;
use ikigai_tui::rows::Symbols;
use ikigai_tui::screen::{Driver, Whom};

pub(crate) const HERE: &str = "/home/somebody/parser";

/// Longer than anything takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// An engine over an empty store, with all models and a key for one provider.
pub(crate) fn engine() -> Engine {
    let store = MemoryStore::new(IdSource::new(1).process());
    let key = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "sk-ant-secret".to_owned());
    let client = Client::new(Deadlines::DEFAULT);
    let models = Registry::new(Arc::new(key), client, Arc::new(|| 1));
    let models = models.with_first(Some("demo".to_owned()));
    Engine::new(Arc::new(store), Arc::new(System), Arc::new(models))
}

pub(crate) struct Shown {
    pub(crate) driver: Driver,
    /// What only a terminal can do.
    pub(crate) left: Vec<Wish>,
    grid: Grid,
}

impl Shown {
    pub(crate) async fn open(engine: Engine, columns: u16, rows: u16) -> Self {
        let around = Surroundings {
            symbols: Symbols::Utf8,
            home: None,
            time_of_day: |_| "14:03".to_owned(),
            program: "ikigai",
            is_confined: true,
            local_server: None,
            secrets: Vec::new(),
        };
        let whom = Whom::New {
            session: HERE.to_owned(),
            workdir: HERE.to_owned(),
        };
        let size = (columns, rows);
        let driver = Driver::open(engine, whom, around, Bindings::default(), size).await;
        let mut shown = Self {
            driver: driver.unwrap(),
            left: Vec::new(),
            grid: Grid::default(),
        };
        shown.driver.settle_in();
        shown.go_on().await;
        shown
    }

    /// Presses keys by their names, one after the other.
    pub(crate) async fn press(&mut self, keys: &[&str]) {
        for key in keys {
            let key: Key = key.parse().unwrap();
            self.happen(Happening::Key(key)).await;
        }
    }

    /// Types text letter by letter.
    pub(crate) async fn type_text(&mut self, text: &str) {
        for letter in text.chars() {
            let mut name = letter.to_string();
            if letter == ' ' {
                "space".clone_into(&mut name);
            }
            self.press(&[&name]).await;
        }
    }

    /// Presses the mouse where this text stands.
    pub(crate) async fn click(&mut self, text: &str) {
        let rows = self.rows();
        let row = rows.iter().position(|row| row.contains(text)).unwrap();
        let row = u16::try_from(row).unwrap();
        for deed in [Deed::Press, Deed::Release] {
            let mouse = Mouse {
                deed,
                row,
                column: 4,
            };
            self.happen(Happening::Mouse(mouse)).await;
        }
    }

    pub(crate) async fn happen(&mut self, happening: Happening) {
        self.driver.app.happened(happening, Instant::now());
        self.go_on().await;
    }

    async fn go_on(&mut self) {
        // What is told leads to wishes, too.
        self.left.extend(self.driver.carry_out().await);
        self.driver.take_in().await;
        self.left.extend(self.driver.carry_out().await);
        self.driver.app.draw(&mut self.grid);
    }

    /// Waits until the screen is as wanted.
    pub(crate) async fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |shown| shown.contains(text)).await;
    }

    pub(crate) async fn wait_until(&mut self, what: &str, wanted: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.go_on().await;
            if wanted(&self.text()) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "no {what} in\n{}",
                self.rows().join("\n")
            );
            let _ = tokio::time::timeout(PATIENCE, self.driver.came()).await;
        }
    }

    pub(crate) fn rows(&self) -> Vec<String> {
        let rows = 0..self.grid.rows();
        rows.map(|row| self.grid.text(row).trim_end().to_owned())
            .collect()
    }

    pub(crate) fn text(&self) -> String {
        self.rows().join("\n")
    }

    pub(crate) fn cursor(&self) -> Option<(u16, u16)> {
        self.grid.cursor
    }

    /// The lines of the commands in an agent's log.
    pub(crate) async fn commands(&self, agent: AgentId) -> Vec<String> {
        let query = PageQuery {
            span: Span::new(agent, Seq(1), Seq(1000)),
            direction: Direction::Forwards,
            limit: 1000,
        };
        let rows = self.driver.engine.store().page(query).await.unwrap();
        let commands = rows
            .iter()
            .filter(|row| row.kind.read_as() == Some(Kind::Command));
        commands
            .filter_map(|row| data::read::<CommandData>(row.data.as_deref()).echo)
            .collect()
    }
}

/// Runs a test on a runtime of its own.
pub(crate) fn on_runtime(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(test);
}
