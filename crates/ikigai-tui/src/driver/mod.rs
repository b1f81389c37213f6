//! Driver of the screen: passes engine events to it, loads pages, executes effects. It knows no
//! terminal: it returns the actions that need one.

mod background;
mod choices;
mod follower;
mod foreign_agents;
mod foreign_questions;
pub(crate) mod mailbox;
mod read_timer;
mod submissions;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_core::data::{self, Cause, CommandData};
use ikigai_core::{AgentId, Kind, RowRef};
use ikigai_engine::{
    AgentJob, CommitError, Engine, EngineError, Followed, ListingView, Status, Stop, UiEvent,
    UserInput, UserRequest,
};

pub(crate) use self::background::LoadResult;
use self::background::Loader;
use self::follower::Follower;
use self::foreign_agents::interrupt_elsewhere;
pub use self::foreign_agents::{NeighbourAnswer, Neighbours};
use self::foreign_questions::{ask_holder, gives_to_holder};
pub use self::mailbox::EventQueue;
use self::mailbox::{Mailbox, MailboxItem};
use self::read_timer::ReadTimer;
use crate::app::{App, EngineRequest, LoadRequest, Pane, TerminalAction, UiEffect, UiOptions};
use crate::drafts::{DraftFiles, DraftWriter};
use crate::keys::Bindings;

/// Interval between two checks that the owner of the current agent lives.
const HELD_PAUSE: Duration = Duration::from_secs(2);

/// Most entries of a directory for completion.
const MOST_ENTRIES: usize = 1000;

/// Agent of the first frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstAgent {
    /// An existing agent.
    Agent(AgentId),
    /// A new root.
    New {
        /// Directory of its session.
        session: String,
        /// Directory of its tools.
        workdir: String,
    },
}

/// The screen with its engine and loaders.
pub struct Driver {
    /// The engine.
    pub engine: Engine,
    /// The screen.
    pub app: App,
    loader: Loader,
    follower: Follower,
    /// Reads of the tree, and of what waits for the user.
    tree: ReadTimer,
    inbox: ReadTimer,
    /// Other processes that own agents.
    pub(super) neighbours: Option<Arc<dyn Neighbours>>,
    /// Files of drafts and pending messages, until the first frame is drawn.
    pub(super) draft_files: Option<DraftFiles>,
    pub(super) drafts: Option<DraftWriter>,
}

impl Driver {
    /// Loads the first frame. Stores nothing, unless there is no agent yet.
    pub async fn open(
        engine: Engine,
        whom: FirstAgent,
        around: UiOptions,
        bindings: Bindings,
        size: (u16, u16),
    ) -> Result<Self, EngineError> {
        let mailbox = Arc::<Mailbox>::default();
        engine.observe(mailbox.observer(), true);
        engine.set_screen();
        let agent = match whom {
            FirstAgent::Agent(agent) => agent,
            FirstAgent::New { session, workdir } => engine.activate_new(&session, &workdir).await?,
        };
        let pane = Pane::open(&engine, agent).await?;
        let mut app = App::new(around, bindings, size, pane, Instant::now());
        let modes = engine.clone();
        app.set_modes(Arc::new(move |state| modes.mode_in_force(state)));
        Ok(Self {
            loader: Loader::new(engine.clone(), mailbox),
            engine,
            app,
            follower: Follower::default(),
            tree: ReadTimer::default(),
            inbox: ReadTimer::default(),
            neighbours: None,
            draft_files: None,
            drafts: None,
        })
    }

    /// Starts after the first frame: takes the agent's lease and starts background loads.
    pub fn start(&mut self) {
        let current = self.app.current();
        self.start_drafts();
        self.loader.activate(current);
        self.loader.read_tree(self.app.current());
        self.inbox.want();
        self.loader.read_status(&self.app);
        self.loader.list_choices(self.app.workdir());
        self.loader.try_confinement();
        self.loader.find_server();
        self.loader.start_tool_servers(&self.app.workdir());
        self.loader.supervise();
        self.loader.watch_holders();
        self.loader.watch_others();
    }

    /// Returns true if a load runs that changes the screen. Reads a due tree at once.
    pub(crate) fn is_loading(&mut self) -> bool {
        self.read_due(|timer| timer.due().is_some());
        self.loader.is_loading()
    }

    /// Waits until there is something to drain. Cancel safe.
    pub async fn came(&mut self) {
        // Its owner may die silently.
        let again = self.tree.begun().filter(|_| self.follower.is_active());
        let again = again.map(|read| read + HELD_PAUSE);
        let due = async {
            let tree = self.tree.due().or(again);
            match tree.into_iter().chain(self.inbox.due()).min() {
                Some(due) => tokio::time::sleep_until(due.into()).await,
                None => std::future::pending().await,
            }
        };
        let followed = tokio::select! {
            () = self.loader.mailbox.came() => return,
            () = due => {
                self.tree.want_now_unless(&self.inbox);
                return;
            }
            followed = self.follower.next() => followed,
        };
        if let Err(error) = self.follower.add(followed) {
            self.app.warn(&error);
        }
    }

    /// Reports whether an event waits that needs a frame at once.
    pub(super) fn is_urgent(&self) -> bool {
        self.loader.mailbox.is_urgent()
    }

    /// Returns the events of the engine and results of loads.
    pub(super) fn mailbox(&self) -> Arc<Mailbox> {
        self.loader.mailbox.clone()
    }

    /// Handles all waiting events and results.
    pub async fn drain(&mut self) {
        for followed in self.follower.take() {
            self.handle_followed(followed).await;
        }
        for letter in self.loader.mailbox.take() {
            match letter {
                MailboxItem::Event(agent, update) => self.handle_event(agent, update).await,
                MailboxItem::Found(found) => self.handle_loaded(found).await,
            }
        }
        self.read_due(ReadTimer::is_due);
        self.app.set_processes(self.engine.listed_processes());
    }

    /// Handles rows and drafts of another process for the current agent.
    async fn handle_followed(&mut self, followed: Followed) {
        match followed {
            Followed::Rows(rows) => {
                for row in rows {
                    self.handle_event(row.at.agent, UiEvent::Stored(row)).await;
                }
                self.tree.want();
            }
            Followed::Draft(text) => {
                let agent = self.app.current();
                let live = self.app.roster().live(agent);
                let said = live.map_or("", |live| live.text.as_str());
                let more = text.strip_prefix(said).map(str::to_owned);
                if more.is_none() {
                    self.handle_event(agent, UiEvent::Again).await;
                }
                let more = UiEvent::Text(more.unwrap_or(text));
                self.handle_event(agent, more).await;
            }
            Followed::Closed => {}
        }
    }

    async fn handle_event(&mut self, agent: AgentId, update: UiEvent) {
        if let UiEvent::Stored(row) | UiEvent::Settled(row) = &update
            && let Some(pane) = self.app.pane_mut(agent)
            && let Err(error) = pane.apply(&self.engine, row).await
        {
            self.app.warn(&error);
        }
        let is_other = matches!(update, UiEvent::Ended(_)) || moves_window(&update);
        self.app.handle_event(agent, &update, Instant::now());
        if is_other && agent == self.app.current() {
            self.loader.read_status(&self.app);
        }
    }

    /// Executes queued effects; returns the actions for a terminal.
    pub async fn execute(&mut self) -> Vec<TerminalAction> {
        self.keep_typed();
        let mut actions = Vec::new();
        loop {
            let effects = self.app.take_effects();
            if effects.is_empty() {
                return actions;
            }
            for effect in effects {
                match effect {
                    UiEffect::Engine(request) => self.request(request).await,
                    UiEffect::Load(request) => self.load(request).await,
                    UiEffect::Terminal(action) => actions.push(action),
                }
            }
        }
    }

    async fn request(&mut self, request: EngineRequest) {
        match request {
            EngineRequest::Send(agent, request) => self.send(agent, request).await,
            EngineRequest::Show(agent) => self.show(agent).await,
            EngineRequest::MarkRead(row) => self.loader.mark_read(row),
            EngineRequest::Dismiss(entry) => self.loader.dismiss(*entry),
            EngineRequest::AskHolder(agent) => Box::pin(ask_holder(self, agent)).await,
            EngineRequest::TakeOver(agent) => self.take(agent).await,
            EngineRequest::SetKey { provider, key } => {
                self.engine.set_typed_key(&provider, key);
                let agent = self.app.current();
                let command = UserRequest::parse(format!("/key {provider}"));
                self.send(agent, command).await;
            }
            EngineRequest::Outbox(action) => self.do_outbox(action),
            EngineRequest::SaveDraft(agent, text) => self.save_draft(agent, text),
        }
    }

    async fn load(&mut self, request: LoadRequest) {
        match request {
            LoadRequest::OlderRows => self.read_older().await,
            LoadRequest::NewerRows => self.read_newer().await,
            LoadRequest::Search { typed, after } => {
                let (from, workdir) = (self.app.current(), self.app.workdir());
                self.loader.search(typed, after, from, workdir);
            }
            LoadRequest::RowInContext(row) => self.go_to(row).await,
            LoadRequest::SearchHits => self.app.list_hits_again(),
            LoadRequest::RewoundRows(rewind) => self.toggle_left(rewind).await,
            LoadRequest::Choices(what) => self.loader.read_choice(what, self.app.model()),
            LoadRequest::Pane => self.reread().await,
            LoadRequest::Peek(agent) => self.peek(agent).await,
            LoadRequest::Board(agents) => self.loader.read_board(agents),
            LoadRequest::MergePreview(into, arguments) => {
                self.loader.preview_merge(into, arguments);
            }
            LoadRequest::Tree => self.tree.want(),
            LoadRequest::Inbox => self.inbox.want(),
            LoadRequest::Directory { typed, directory } => {
                let list = move || list_directory(&directory);
                let entries = tokio::task::spawn_blocking(list).await;
                self.app.set_listing(&typed, entries.unwrap_or_default());
            }
            LoadRequest::SentMessages => self.read_history().await,
        }
    }

    pub(super) async fn send(&mut self, agent: AgentId, request: UserRequest) {
        if Box::pin(gives_to_holder(self, &request)).await {
            return;
        }
        let is_shown =
            matches!(&request, UserRequest::List(listing) if listing.view != ListingView::Overlay);
        let merged = match request {
            UserRequest::Line(input) => return Box::pin(self.submit(agent, input)).await,
            UserRequest::Do(
                AgentJob::Merge(_, ref text) | AgentJob::StoreSummary(_, Ok(ref text)),
            ) => Some(text.clone()),
            _ => None,
        };
        let stops = matches!(request, UserRequest::Stop(Stop::Interrupt(Cause::User)));
        let Err(error) = self.engine.say(agent, request).await else {
            return;
        };
        if let EngineError::Commit(CommitError::Held { owner, .. }) = &error
            && stops
        {
            return Box::pin(interrupt_elsewhere(self, agent, owner)).await;
        }
        // The screen shows the listing; an agent of another process gets no row.
        if is_shown && matches!(error, EngineError::Commit(CommitError::Held { .. })) {
            return;
        }
        let Some(text) = merged else {
            return self.app.warn(&error);
        };
        let reason = error.to_string();
        let update = UiEvent::NotStored {
            id: None,
            input: UserInput::Message(text),
            reason,
        };
        self.app.handle_event(agent, &update, Instant::now());
    }

    pub(super) async fn show(&mut self, agent: AgentId) {
        let is_known = match self.app.pane_mut(agent) {
            Some(pane) => match pane.catch_up(&self.engine).await {
                Ok(()) => true,
                Err(error) => return self.app.warn(&error),
            },
            None => false,
        };
        if is_known {
            self.app.show_again(agent);
        } else {
            match Pane::open(&self.engine, agent).await {
                Ok(pane) => self.app.show(pane),
                Err(error) => return self.app.warn(&error),
            }
            self.claim_draft(agent);
        }
        self.engine.note_use(agent);
        self.add_unlisted().await;
        self.follower.stop();
        self.loader.activate(agent);
        self.loader.read_status(&self.app);
    }

    /// Shows rows that another process stored before this one took the agent.
    async fn catch_up(&mut self, agent: AgentId) {
        if let Some(pane) = self.app.pane_mut(agent)
            && let Err(error) = pane.catch_up(&self.engine).await
        {
            self.app.warn(&error);
        }
    }

    /// Reads an agent for the board.
    async fn peek(&mut self, agent: AgentId) {
        let read = match self.app.pane_mut(agent) {
            Some(pane) => pane.catch_up(&self.engine).await,
            None => match Pane::open(&self.engine, agent).await {
                Ok(pane) => {
                    self.app.peek(pane);
                    Ok(())
                }
                Err(error) => Err(error.into()),
            },
        };
        if let Err(error) = read {
            self.app.warn(&error);
        }
    }

    /// Handles the result of a load.
    async fn handle_loaded(&mut self, found: LoadResult) {
        let current = self.app.current();
        match found {
            LoadResult::Tree(tree, agent, spent) => {
                let shown = tree.iter().find(|branch| branch.agent.id == current);
                if shown.is_some_and(|branch| branch.agent.owner.is_none()) {
                    self.app.set_holder(None);
                }
                self.app.set_tree(tree);
                self.app.set_cost(agent, &spent);
                self.add_unlisted().await;
            }
            LoadResult::Board { costs, newest } => self.app.set_board(&costs, &newest),
            LoadResult::Merge(into, previews) => self.app.preview_merge(into, previews),
            LoadResult::Stopped(lines) => self.app.set_notes(lines),
            LoadResult::Confined(is_confined) => self.app.set_confined(is_confined),
            LoadResult::Choices(names) => self.app.set_choices(names),
            LoadResult::Server(found) => self.app.set_local_server(found),
            LoadResult::Choice(picker) => self.app.choose(*picker),
            LoadResult::Hits { hits, is_more } => self.app.set_hits(*hits, is_more),
            LoadResult::Filled(agent, filled) if agent == current => self.app.set_filled(filled),
            LoadResult::CheckedOut(agent, branch) if agent == current => {
                self.app.set_branch(branch);
            }
            LoadResult::Held(agent, holder) if agent == current => {
                self.app.set_holder(Some(holder));
                self.follow(agent);
            }
            LoadResult::Attended(agent) => {
                self.catch_up(agent).await;
                self.tree.want();
            }
            // Agents of this process send their own events.
            LoadResult::Grown if self.app.roster().others_may_move() => {
                self.tree.want();
                self.inbox.want();
            }
            LoadResult::Inbox(entries) => self.app.set_inbox(entries),
            LoadResult::Grown | LoadResult::Seen => self.inbox.want(),
            LoadResult::Filled(..) | LoadResult::CheckedOut(..) | LoadResult::Held(..) => {}
            LoadResult::Delivered(agent, submission, delivered) => {
                self.mark_delivered(agent, submission, delivered).await;
            }
            LoadResult::PendingStored(agent, submission, stored) => {
                self.pending_stored(agent, &submission, stored);
            }
            LoadResult::Kept(report) => self.kept(report),
            LoadResult::Trouble(text) => self.app.warn(&text),
        }
    }

    async fn read_older(&mut self) {
        let agent = self.app.current();
        if let Some(pane) = self.app.pane_mut(agent)
            && let Err(error) = pane.read_older(&self.engine).await
        {
            self.app.warn(&error);
        }
        self.add_unlisted().await;
    }

    async fn read_newer(&mut self) {
        let agent = self.app.current();
        if let Some(pane) = self.app.pane_mut(agent)
            && let Err(error) = pane.read_newer(&self.engine).await
        {
            self.app.warn(&error);
        }
    }

    /// Shows a row in the history of the agent that wrote it.
    pub async fn go_to(&mut self, row: RowRef) {
        if row.agent != self.app.current() {
            self.show(row.agent).await;
        }
        let Some(pane) = self.app.pane_mut(row.agent) else {
            return;
        };
        match pane.go_to(&self.engine, row).await {
            Ok(true) => {
                self.app.arrive(row);
                self.add_unlisted().await;
            }
            Ok(false) => self.app.warn(&format!("no event {row}")),
            Err(error) => self.app.warn(&error),
        }
    }

    /// Loads visible agents that are not in the tree: new or reaped ones.
    async fn add_unlisted(&mut self) {
        let mentioned = self.app.pane().map(Pane::mentions).unwrap_or_default();
        for agent in mentioned.into_iter().chain([self.app.current()]) {
            if self.app.roster().get(agent).is_none()
                && let Ok(Some(record)) = self.engine.reader().agent(agent).await
                && (record.status == Status::Reaped || agent == self.app.current())
            {
                self.app.add_agent(record);
            }
        }
    }

    async fn toggle_left(&mut self, rewind: RowRef) {
        let agent = self.app.current();
        if let Some(pane) = self.app.pane_mut(agent)
            && let Err(error) = pane.toggle_left(&self.engine, rewind).await
        {
            self.app.warn(&error);
        }
    }

    /// Reads the current agent from the beginning; keeps the input.
    async fn reread(&mut self) {
        let agent = self.app.current();
        match Pane::open(&self.engine, agent).await {
            Ok(fresh) => self.app.renew(fresh),
            Err(error) => return self.app.warn(&error),
        }
        self.tree.want();
        self.loader.read_status(&self.app);
        self.loader.list_choices(self.app.workdir());
    }

    /// Starts the reads that are due.
    fn read_due(&mut self, is_due: impl Fn(&ReadTimer) -> bool) {
        let timers = [&mut self.tree, &mut self.inbox];
        let due = timers.map(|timer| is_due(timer) && timer.begin());
        self.loader.read_due(self.app.current(), due);
    }

    /// Loads messages of earlier runs: the newest ones to agents of this session.
    async fn read_history(&mut self) {
        match self.engine.input_history(self.app.current()).await {
            Ok(sent) => self.app.set_history(sent),
            Err(error) => self.app.warn(&error),
        }
    }
}

/// Reports whether an event changes the next request without ending a turn.
fn moves_window(update: &UiEvent) -> bool {
    let (UiEvent::Stored(row) | UiEvent::Settled(row)) = update else {
        return false;
    };
    match row.kind.read_as() {
        Some(Kind::Clear | Kind::Rewind | Kind::Summary) => true,
        // Another model has another window, and a budget may be set.
        Some(Kind::Command) => data::read::<CommandData>(row.data.as_deref()).set.is_some(),
        Some(
            Kind::System
            | Kind::User
            | Kind::Assistant
            | Kind::ToolCall
            | Kind::ToolResult
            | Kind::Mark
            | Kind::Fork
            | Kind::AgentKilled
            | Kind::Usage
            | Kind::Interrupted
            | Kind::Error
            | Kind::Process
            | Kind::Files,
        )
        | None => false,
    }
}

/// Returns the entries of a directory, each with a directory flag.
#[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
fn list_directory(directory: &Path) -> Vec<(String, bool)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let entries = entries.take(MOST_ENTRIES).map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, entry.path().is_dir())
    });
    entries.collect()
}
