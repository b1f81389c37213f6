//! A screen without a terminal: a scripted model, a log, keys by their names, rows as text.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ikigai_core::data::{self, CommandData};
use ikigai_core::spelling::spell_out;
use ikigai_core::{AgentId, Kind, Micros, PageQuery, RowRef, Seq, Span};
use ikigai_engine::{Engine, Environment, GrantKey, Question, UiEvent};
use ikigai_providers::Models;
use ikigai_providers::registry::Registry;
use ikigai_providers::transport::{Client, Deadlines};
use ikigai_testkit::{ChosenStore, FaultyStore, IdSource, ManualClock, ScriptedProvider};
use ikigai_tui::app::{TerminalAction, UiOptions};
use ikigai_tui::drafts::DraftFiles;
use ikigai_tui::driver::{Driver, FirstAgent};
use ikigai_tui::key::{MouseAction, MouseEvent, TerminalEvent};
use ikigai_tui::keys::Bindings;
use ikigai_tui::paint::Grid;
use ikigai_tui::signs::Symbols;

const HERE: &str = "/home/margaret/parser";

/// Time limit of a wait; reaching it means that the event never comes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Timeout of one wait for an event, after which the clock is checked.
const MOMENT: Duration = Duration::from_millis(50);

/// Sizes at which everything must be usable.
pub(crate) const SIZES: [(u16, u16); 3] = [(120, 40), (80, 24), (40, 12)];

/// No two screens draw the same ids: they name processes of this machine, too.
static SCREENS: AtomicU64 = AtomicU64::new(1);

struct Outside {
    clock: ManualClock,
    ids: IdSource,
    user: Arc<AtomicU8>,
}

impl Environment for Outside {
    fn now(&self) -> Micros {
        self.clock.advance(Duration::from_millis(1));
        self.clock.now()
    }

    fn random(&self) -> [u8; 16] {
        self.ids.wide_bits().to_be_bytes()
    }

    fn grant_key(&self) -> GrantKey {
        GrantKey::new([self.user.load(Ordering::Relaxed); 32])
    }
}

fn process() -> ikigai_core::ProcessId {
    IdSource::new(10_000 + SCREENS.fetch_add(1, Ordering::Relaxed)).process()
}

/// Waits until the thread that writes drafts has ended, as it does with a real process.
async fn wait_for_free_locks(drafts: &Path) {
    use rustix::fs::{FlockOperation, flock};
    let is_held = |path: &Path| {
        let is_lock = path.extension().is_some_and(|end| end == "lock");
        let file = std::fs::File::open(path).unwrap();
        is_lock && flock(&file, FlockOperation::NonBlockingLockExclusive).is_err()
    };
    let end = Instant::now() + PATIENCE;
    loop {
        let entries = std::fs::read_dir(drafts).unwrap().flatten();
        if !entries.map(|entry| entry.path()).any(|path| is_held(&path)) {
            return;
        }
        assert!(Instant::now() < end, "the writer of drafts never ends");
        tokio::time::sleep(MOMENT).await;
    }
}

fn new_root() -> FirstAgent {
    FirstAgent::New {
        session: HERE.to_owned(),
        workdir: HERE.to_owned(),
    }
}

pub(crate) struct Stage {
    pub(crate) driver: Driver,
    pub(crate) provider: ScriptedProvider,
    /// The number of the user whose grants are in force.
    pub(crate) user: Arc<AtomicU8>,
    /// Actions for a terminal that no test took.
    left: Vec<TerminalAction>,
    grid: Grid,
    /// Offset of the test's clock from the real one.
    later: Duration,
    /// The log behind a store that can fail.
    log: Option<ChosenStore>,
}

impl Stage {
    pub(crate) async fn new(size: (u16, u16)) -> Self {
        let provider = ScriptedProvider::default();
        let models = Arc::new(provider.clone());
        Self::asking(models, provider, size).await
    }

    /// Returns a screen with all models, and a key of one provider. The demo model answers.
    pub(crate) async fn with_models(size: (u16, u16)) -> Self {
        let key = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "sk-ant-secret".to_owned());
        let client = Client::new(Deadlines::DEFAULT);
        let models = Registry::new(Arc::new(key), client, Arc::new(|| 1));
        Self::with_registry(models, size).await
    }

    /// Returns a screen with these models. The demo model answers.
    pub(crate) async fn with_registry(models: Registry, size: (u16, u16)) -> Self {
        let models = models.with_first(Some("demo".to_owned()));
        Self::asking(Arc::new(models), ScriptedProvider::default(), size).await
    }

    async fn asking(models: Arc<dyn Models>, provider: ScriptedProvider, size: (u16, u16)) -> Self {
        let seed = SCREENS.fetch_add(1, Ordering::Relaxed);
        let user = Arc::new(AtomicU8::new(1));
        let outside = Outside {
            clock: ManualClock::new(Micros(1_000_000_000)),
            ids: IdSource::new(seed),
            user: user.clone(),
        };
        let engine = Engine::new(
            Arc::new(ChosenStore::new(IdSource::new(10_000 + seed).process())),
            Arc::new(outside),
            models,
        );
        let stage = Self::on(engine, provider, new_root(), size, None).await;
        Self { user, ..stage }
    }

    /// Returns a screen on a store that can fail, with its drafts in a directory.
    pub(crate) async fn with_faults(drafts: Option<&Path>) -> (Self, Arc<FaultyStore>) {
        let log = ChosenStore::new(process());
        let provider = ScriptedProvider::default();
        Self::on_faulty(log, provider, new_root(), drafts).await
    }

    /// Kills the process, and starts another one on the same log and drafts.
    pub(crate) async fn killed(self, drafts: &Path) -> (Self, Arc<FaultyStore>) {
        let whom = FirstAgent::Agent(self.current());
        let log = self.log.clone().unwrap();
        log.die();
        let (log, provider) = (log.other_process(process()), self.provider.clone());
        drop(self);
        wait_for_free_locks(drafts).await;
        Box::pin(Self::on_faulty(log, provider, whom, Some(drafts))).await
    }

    /// Opens the screen of another process on the same agent, which this one holds.
    pub(crate) async fn beside(&self) -> Self {
        let log = self.log.as_ref().unwrap().other_process(process());
        let whom = FirstAgent::Agent(self.current());
        let provider = self.provider.clone();
        Box::pin(Self::on_faulty(log, provider, whom, None)).await.0
    }

    /// Changes the size of the screen.
    pub(crate) async fn resized(&mut self, columns: u16, rows: u16) {
        self.happened(TerminalEvent::Resize { columns, rows }).await;
    }

    async fn on_faulty(
        log: ChosenStore,
        provider: ScriptedProvider,
        whom: FirstAgent,
        drafts: Option<&Path>,
    ) -> (Self, Arc<FaultyStore>) {
        let outside = Outside {
            clock: ManualClock::new(Micros(1_000_000_000)),
            ids: IdSource::new(SCREENS.fetch_add(1, Ordering::Relaxed)),
            user: Arc::default(),
        };
        let store = Arc::new(FaultyStore::new(Arc::new(log.clone())));
        let models = Arc::new(provider.clone());
        let engine = Engine::new(store.clone(), Arc::new(outside), models);
        let mut stage = Self::on(engine, provider, whom, (80, 24), drafts).await;
        stage.log = Some(log);
        (stage, store)
    }

    /// Opens another screen on the same agents, without this one's state.
    pub(crate) async fn again(self, engine: Engine) -> Self {
        let size = (self.grid.columns(), self.grid.rows());
        let whom = FirstAgent::Agent(self.current());
        Box::pin(Self::on(engine, self.provider, whom, size, None)).await
    }

    async fn on(
        engine: Engine,
        provider: ScriptedProvider,
        whom: FirstAgent,
        size: (u16, u16),
        drafts: Option<&Path>,
    ) -> Self {
        let around = UiOptions {
            symbols: Symbols::Utf8,
            home: Some("/home/margaret".to_owned()),
            time_of_day: |_| "14:03".to_owned(),
            now: || Micros(1_300_000_000),
            program: "ikigai",
            is_confined: true,
            local_server: None,
            secrets: Vec::new(),
        };
        let bindings = Bindings::default();
        let driver = Driver::open(engine, whom, around, bindings, size).await;
        let mut stage = Self {
            driver: driver.unwrap(),
            provider,
            user: Arc::default(),
            left: Vec::new(),
            grid: Grid::default(),
            later: Duration::ZERO,
            log: None,
        };
        if let Some(directory) = drafts {
            stage
                .driver
                .set_drafts(DraftFiles::at(directory.to_owned()));
        }
        stage.driver.start();
        stage
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::now() + self.later
    }

    /// Lets time pass, without waiting.
    pub(crate) async fn pass(&mut self, time: Duration) {
        self.later += time;
        self.driver.app.tick(self.now());
        self.settle().await;
    }

    pub(crate) fn current(&self) -> AgentId {
        self.driver.app.current()
    }

    /// Presses keys one after the other, by their names.
    pub(crate) async fn press(&mut self, keys: &str) {
        for key in keys.split_whitespace() {
            let key = TerminalEvent::Key(key.parse().unwrap());
            self.happened(key).await;
        }
    }

    /// Presses a key at a time.
    pub(crate) async fn press_at(&mut self, key: &str, now: Instant) {
        let key = TerminalEvent::Key(key.parse().unwrap());
        self.driver.app.handle_input(key, now);
        self.settle().await;
    }

    /// Types letters.
    pub(crate) async fn letters(&mut self, text: &str) {
        for letter in text.chars() {
            let name = match letter {
                ' ' => "space".to_owned(),
                letter => letter.to_string(),
            };
            self.press(&name).await;
        }
    }

    /// Types a line and sends it.
    pub(crate) async fn line(&mut self, text: &str) {
        self.letters(text).await;
        self.press("enter").await;
    }

    pub(crate) async fn mouse(&mut self, action: MouseAction, column: u16, row: u16) {
        let mouse = MouseEvent {
            action,
            column,
            row,
        };
        self.happened(TerminalEvent::Mouse(mouse)).await;
    }

    pub(crate) async fn happened(&mut self, what: TerminalEvent) {
        let now = self.now();
        self.driver.app.handle_input(what, now);
        self.settle().await;
    }

    /// Runs all pending work that needs no waiting.
    pub(crate) async fn settle(&mut self) {
        loop {
            self.left.extend(self.driver.execute().await);
            self.driver.drain().await;
            let now = self.now();
            match self.driver.app.next_tick() {
                Some(at) if at <= now => self.driver.app.tick(now),
                _ => {}
            }
            let actions = self.driver.execute().await;
            let waits = self.driver.app.next_tick().is_none_or(|at| at > now);
            if actions.is_empty() && waits {
                return;
            }
            self.left.extend(actions);
        }
    }

    /// Returns the text on the screen without trailing blanks.
    pub(crate) fn text(&mut self) -> String {
        self.rows().join("\n")
    }

    pub(crate) fn rows(&mut self) -> Vec<String> {
        self.driver.app.draw(&mut self.grid);
        let rows = 0..self.grid.rows();
        rows.map(|row| self.grid.text(row).trim_end().to_owned())
            .collect()
    }

    pub(crate) fn grid(&mut self) -> &Grid {
        self.driver.app.draw(&mut self.grid);
        &self.grid
    }

    /// Returns the number of the row that has a text.
    pub(crate) fn row_with(&mut self, text: &str) -> u16 {
        let rows = self.rows();
        let row = rows.iter().position(|row| row.contains(text));
        let row = row.unwrap_or_else(|| panic!("{text} is not on\n{}", rows.join("\n")));
        u16::try_from(row).unwrap()
    }

    pub(crate) fn last_row(&mut self) -> String {
        self.rows().pop().unwrap_or_default()
    }

    /// Waits until a condition holds for the text on the screen.
    pub(crate) async fn until(&mut self, is_it: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            self.settle().await;
            let text = self.text();
            if is_it(&text) {
                return text;
            }
            // Typed input may become due without an event.
            let _ = tokio::time::timeout(MOMENT, self.driver.came()).await;
            assert!(Instant::now() < end, "it never came:\n{text}");
        }
    }

    /// Waits until a text is on the screen.
    pub(crate) async fn sees(&mut self, text: &str) -> String {
        self.until(|screen| screen.contains(text)).await
    }

    /// Sends a message, answers it, and waits for the end of the turn.
    pub(crate) async fn talk(&mut self, said: &str, answered: &str) {
        self.provider.will_say(answered);
        let before = self.head();
        self.line(said).await;
        self.answered(said, before, answered).await;
    }

    /// Runs `turns` turns: `question 0` with `Answer 0.`, and so on.
    pub(crate) async fn talk_long(&mut self, turns: usize) {
        for turn in 0..turns {
            let (said, answered) = (format!("question {turn}"), format!("Answer {turn}."));
            self.provider.will_say(&answered);
            let before = self.head();
            self.driver.app.submit(said.clone());
            self.settle().await;
            self.answered(&said, before, &answered).await;
        }
    }

    async fn answered(&mut self, said: &str, before: Seq, answered: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.has_answer(before, answered) {
            let came = tokio::time::timeout_at(end.into(), self.driver.came()).await;
            assert!(came.is_ok(), "no answer to {said}");
            self.settle().await;
        }
    }

    fn head(&self) -> Seq {
        self.driver.app.pane().unwrap().agent.state.head()
    }

    fn has_answer(&self, before: Seq, answered: &str) -> bool {
        let app = &self.driver.app;
        let live = app.roster().live(self.current());
        let mut entries = app.pane().unwrap().agent.view.entries().iter();
        let is_there = entries
            .any(|entry| entry.at().seq > before && entry.row.content.as_deref() == Some(answered));
        is_there && live.is_none_or(|live| !live.is_busy())
    }

    /// Handles an event of an agent as if the engine had sent it.
    pub(crate) fn told(&mut self, agent: AgentId, update: &UiEvent) {
        let now = self.now();
        self.driver.app.handle_event(agent, update, now);
    }

    /// Shows an agent's question about a command.
    pub(crate) fn asks(&mut self, agent: AgentId, command: &str) {
        let first = command.split(' ').next().unwrap_or_default();
        self.asks_about(Question {
            pattern: format!("{first} *"),
            ..question(agent, command)
        });
    }

    /// Shows a question of an agent.
    pub(crate) fn asks_about(&mut self, question: Question) {
        let (now, agent) = (self.now(), question.call.agent);
        self.driver
            .app
            .handle_event(agent, &UiEvent::Question(question), now);
    }

    /// Returns the number of open questions of an agent.
    pub(crate) fn open_questions(&self, agent: AgentId) -> usize {
        let live = self.driver.app.roster().live(agent);
        live.map_or(0, |live| live.questions.len())
    }

    /// Takes the actions for a terminal.
    pub(crate) fn terminal_actions(&mut self) -> Vec<TerminalAction> {
        std::mem::take(&mut self.left)
    }

    /// Returns the messages in the log of the agent that is shown.
    pub(crate) async fn messages(&self) -> Vec<String> {
        let query = PageQuery::oldest(Span::new(self.current(), Seq(1), Seq(1000)), 1000);
        let rows = self.driver.engine.reader().page(query).await.unwrap();
        let users = rows.into_iter();
        let users = users.filter(|row| row.kind.read_as() == Some(Kind::User));
        users.filter_map(|row| row.content).collect()
    }

    /// Returns the lines of the commands in an agent's log.
    pub(crate) async fn commands(&self, agent: AgentId) -> Vec<String> {
        let query = PageQuery::oldest(Span::new(agent, Seq(1), Seq(1000)), 1000);
        let rows = self.driver.engine.reader().page(query).await.unwrap();
        let commands = rows
            .iter()
            .filter(|row| row.kind.read_as() == Some(Kind::Command));
        commands
            .filter_map(|row| data::read::<CommandData>(row.data.as_deref()).echo)
            .collect()
    }

    /// Returns the input text of the current agent.
    pub(crate) fn input(&self) -> String {
        self.driver.app.pane().unwrap().editor.text()
    }
}

/// Returns a question about a command, as the engine creates it.
pub(crate) fn question(agent: AgentId, command: &str) -> Question {
    Question {
        call: RowRef::new(agent, Seq(99)),
        agent: "parser".to_owned(),
        tool: "bash".to_owned(),
        shown: spell_out(command),
        workdir: HERE.to_owned(),
        preview: None,
        pattern: "make *".to_owned(),
        hash: "9f2b6c0d1e8a4735".to_owned(),
    }
}
