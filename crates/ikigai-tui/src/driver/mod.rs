//! Drives the screen: passes events of the engine to it, reads pages, and executes its effects.
//! It knows no terminal: it returns the actions that need one.

mod background;
mod choices;
mod foreign_agents;
pub(crate) mod mailbox;
mod sent_history;
mod submissions;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_core::data::{self, CommandData};
use ikigai_core::settings::ModelChoice;
use ikigai_core::{AgentId, Kind, RowRef};
use ikigai_engine::{Engine, EngineError, Errand, Follow, Followed, Intent, Status, Update};

pub(crate) use self::background::Found;
use self::background::Scout;
pub use self::foreign_agents::{Asked, Neighbours};
use self::mailbox::{Letter, Mailbox};
use crate::app::{App, EngineRequest, LoadRequest, Pane, Surroundings, TerminalAction, UiEffect};
use crate::drafts::{DraftFiles, DraftWriter};
use crate::keys::Bindings;

/// The tree is read at most this often, however much happens.
const TREE_PAUSE: Duration = Duration::from_millis(250);

/// How often it is looked whether whoever holds the agent that is shown is still there.
const HELD_PAUSE: Duration = Duration::from_secs(2);

/// How long a store that failed is left alone before it is asked again.
const FOLLOW_PAUSE: Duration = Duration::from_secs(1);

/// At most so many entries of a directory are offered.
const MOST_ENTRIES: usize = 1000;

/// Who is shown first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// This agent.
    Agent(AgentId),
    /// A new root.
    New {
        /// The directory of its session.
        session: String,
        /// Where its tools run.
        workdir: String,
    },
}

/// See the module.
pub struct Driver {
    /// All agents.
    pub engine: Engine,
    /// What is shown.
    pub app: App,
    scout: Scout,
    /// Follows the agent that is shown, if another process holds it.
    pub(super) follow: Option<Follow>,
    /// When a store that failed is asked again.
    follow_again: Option<Instant>,
    /// What came of it and was not taken in.
    followed: Vec<Followed>,
    /// When the tree may be read next, if it is to be read.
    tree_due: Option<Instant>,
    tree_read: Option<Instant>,
    /// Other programs that hold agents.
    pub(super) neighbours: Option<Arc<dyn Neighbours>>,
    /// Files of drafts and pending messages, until the first frame is drawn.
    pub(super) draft_files: Option<DraftFiles>,
    pub(super) drafts: Option<DraftWriter>,
}

impl Driver {
    /// Reads what the first frame shows. Nothing is stored, unless there is no agent yet.
    pub async fn open(
        engine: Engine,
        whom: Whom,
        around: Surroundings,
        bindings: Bindings,
        size: (u16, u16),
    ) -> Result<Self, EngineError> {
        let mailbox = Arc::<Mailbox>::default();
        engine.observe(mailbox.observer(), true);
        engine.set_screen();
        let agent = match whom {
            Whom::Agent(agent) => agent,
            Whom::New { session, workdir } => engine.attend_new(&session, &workdir).await?,
        };
        let pane = Pane::open(&engine, agent).await?;
        let mut app = App::new(around, bindings, size, pane, Instant::now());
        let modes = engine.clone();
        app.set_modes(Arc::new(move |state| modes.mode_in_force(state)));
        Ok(Self {
            scout: Scout::new(engine.clone(), mailbox),
            engine,
            app,
            follow: None,
            follow_again: None,
            followed: Vec::new(),
            tree_due: None,
            tree_read: None,
            neighbours: None,
            draft_files: None,
            drafts: None,
        })
    }

    /// After the first frame: takes care of the agent, and finds out what stands around it.
    pub fn settle_in(&mut self) {
        let current = self.app.current();
        self.start_drafts();
        self.scout.attend(current);
        self.scout.read_tree(self.app.current());
        self.look_around();
        self.scout.list_choices(self.workdir());
        self.scout.try_confinement();
        self.scout.find_server();
        self.scout.supervise();
        self.scout.watch_others();
    }

    /// Whether something is being found out that the screen will show. The tree is read at once then.
    pub(crate) fn is_finding_out(&mut self) -> bool {
        if self.tree_due.is_some() {
            self.read_tree();
        }
        self.scout.is_away()
    }

    /// Waits until there is something to take in. Safe to drop.
    pub async fn came(&mut self) {
        // Whoever holds it may end without a word.
        let again = self.tree_read.filter(|_| self.follow.is_some());
        let again = again.map(|read| read + HELD_PAUSE);
        let follow = async {
            match &mut self.follow {
                Some(follow) => {
                    if let Some(again) = self.follow_again {
                        tokio::time::sleep_until(again.into()).await;
                    }
                    follow.next_live().await
                }
                None => std::future::pending().await,
            }
        };
        let due = async {
            match self.tree_due.or(again) {
                Some(due) => tokio::time::sleep_until(due.into()).await,
                None => std::future::pending().await,
            }
        };
        let followed = tokio::select! {
            () = self.scout.mailbox.came() => return,
            () = due => {
                self.tree_due.get_or_insert_with(Instant::now);
                return;
            }
            followed = follow => followed,
        };
        self.follow_again = None;
        match followed {
            Ok(Followed::Closed) => self.follow = None,
            Ok(followed) => self.followed.push(followed),
            Err(error) => {
                // Nothing was handed over, so nothing is missed.
                self.follow_again = Some(Instant::now() + FOLLOW_PAUSE);
                self.app.say(format!("⚠ {error}"));
            }
        }
    }

    /// Says whether something waits that is to be shown at once.
    pub(super) fn is_urgent(&self) -> bool {
        self.scout.mailbox.is_urgent()
    }

    /// Letters of the engine and of background loaders.
    pub(super) fn mailbox(&self) -> Arc<Mailbox> {
        self.scout.mailbox.clone()
    }

    /// Takes in what the engine told.
    pub async fn take_in(&mut self) {
        for followed in std::mem::take(&mut self.followed) {
            self.take_in_followed(followed).await;
        }
        for letter in self.scout.mailbox.take() {
            match letter {
                Letter::Told(agent, update) => self.take_in_one(agent, update).await,
                Letter::Found(found) => self.take_in_found(found).await,
            }
        }
        if self.tree_due.is_some_and(|due| Instant::now() >= due) {
            self.read_tree();
        }
    }

    /// Takes in what another process did with the agent that is shown.
    async fn take_in_followed(&mut self, followed: Followed) {
        match followed {
            Followed::Rows(rows) => {
                for row in rows {
                    self.take_in_one(row.at.agent, Update::Stored(row)).await;
                }
                self.want_tree();
            }
            Followed::Draft(text) => {
                let agent = self.app.current();
                let live = self.app.roster().live(agent);
                let said = live.map_or("", |live| live.text.as_str());
                let more = text.strip_prefix(said).map(str::to_owned);
                if more.is_none() {
                    self.take_in_one(agent, Update::Again).await;
                }
                let more = Update::Text(more.unwrap_or(text));
                self.take_in_one(agent, more).await;
            }
            Followed::Closed => {}
        }
    }

    async fn take_in_one(&mut self, agent: AgentId, update: Update) {
        if let Update::Stored(row) | Update::Settled(row) = &update
            && let Some(pane) = self.app.pane_mut(agent)
            && let Err(error) = pane.apply(&self.engine, row).await
        {
            self.app.say(format!("⚠ {error}"));
        }
        let is_other = matches!(update, Update::Ended(_)) || moves_window(&update);
        self.app.told(agent, update, Instant::now());
        if is_other && agent == self.app.current() {
            self.look_around();
        }
    }

    /// Executes queued effects; returns the actions for a terminal.
    pub async fn carry_out(&mut self) -> Vec<TerminalAction> {
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
            EngineRequest::Send(agent, intent) => self.say(agent, intent).await,
            EngineRequest::Show(agent) => self.show(agent).await,
            EngineRequest::TakeOver(agent) => self.take(agent).await,
            EngineRequest::SetKey { provider, key } => {
                self.engine.set_typed_key(&provider, key);
                let agent = self.app.current();
                let command = Intent::Command(format!("/key {provider}"));
                self.say(agent, command).await;
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
                let (from, workdir) = (self.app.current(), self.workdir());
                self.scout.search(typed, after, from, workdir);
            }
            LoadRequest::RowInContext(row) => self.go_to(row).await,
            LoadRequest::SearchHits => self.app.list_hits_again(),
            LoadRequest::RewoundRows(rewind) => self.toggle_left(rewind).await,
            LoadRequest::Choices(what) => self.scout.read_choice(what, self.model()),
            LoadRequest::Pane => self.reread().await,
            LoadRequest::Peek(agent) => self.peek(agent).await,
            LoadRequest::Board(agents) => self.scout.read_board(agents),
            LoadRequest::MergePreview(into, arguments) => {
                self.scout.preview_merge(into, arguments);
            }
            LoadRequest::Tree => self.want_tree(),
            LoadRequest::Directory { typed, directory } => self.list(&typed, &directory),
            LoadRequest::SentMessages => self.read_history().await,
        }
    }

    pub(super) async fn say(&mut self, agent: AgentId, intent: Intent) {
        let merged = match intent {
            Intent::Say(line) | Intent::Command(line) => return self.submit(agent, line).await,
            Intent::Do(Errand::Merge(_, ref text)) => Some(text.clone()),
            _ => None,
        };
        let Err(error) = self.engine.say(agent, intent).await else {
            return;
        };
        let Some(text) = merged else {
            return self.app.say(format!("⚠ {error}"));
        };
        let reason = error.to_string();
        let update = Update::NotStored {
            id: None,
            text,
            reason,
        };
        self.app.told(agent, update, Instant::now());
    }

    pub(super) async fn show(&mut self, agent: AgentId) {
        let is_known = match self.app.pane_mut(agent) {
            Some(pane) => match pane.catch_up(&self.engine).await {
                Ok(()) => true,
                Err(error) => return self.app.say(format!("⚠ {error}")),
            },
            None => false,
        };
        if is_known {
            self.app.show_again(agent);
        } else {
            match Pane::open(&self.engine, agent).await {
                Ok(pane) => self.app.show(pane),
                Err(error) => return self.app.say(format!("⚠ {error}")),
            }
            self.claim_draft(agent);
        }
        self.engine.note_use(agent);
        self.meet_unlisted().await;
        self.follow = None;
        self.scout.attend(agent);
        self.look_around();
    }

    /// Reads an agent that is looked at from the board.
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
            self.app.say(format!("⚠ {error}"));
        }
    }

    /// Takes in what was found out meanwhile.
    async fn take_in_found(&mut self, found: Found) {
        let current = self.app.current();
        match found {
            Found::Tree(tree, agent, spent) => {
                let shown = tree.iter().find(|branch| branch.agent.id == current);
                if shown.is_some_and(|branch| branch.agent.owner.is_none()) {
                    self.app.set_holder(None);
                }
                self.app.set_tree(tree);
                self.app.set_cost(agent, &spent);
                self.meet_unlisted().await;
            }
            Found::Board { costs, newest } => self.app.set_board(&costs, &newest),
            Found::Merge(into, previews) => self.app.preview_merge(into, previews),
            Found::Stopped(lines) => self.app.set_notes(lines),
            Found::Confined(is_confined) => self.app.set_confined(is_confined),
            Found::Choices { models, tools } => self.app.set_choices(models, tools),
            Found::Server(found) => self.app.set_local_server(found),
            Found::Choice(picker) => self.app.choose(*picker),
            Found::Hits { hits, is_more } => self.app.set_hits(*hits, is_more),
            Found::Filled(agent, filled) if agent == current => self.app.set_filled(filled),
            Found::CheckedOut(agent, branch) if agent == current => self.app.set_branch(branch),
            Found::Held(agent, holder) if agent == current => {
                self.app.set_holder(Some(holder));
                let head = self.app.pane().map(|pane| pane.agent.state.head());
                self.follow = head.and_then(|head| self.engine.follow(agent, head).ok());
            }
            Found::Attended => self.want_tree(),
            // What agents of this process do is told by them.
            Found::Grown if self.app.roster().others_may_move() => self.want_tree(),
            Found::Grown | Found::Filled(..) | Found::CheckedOut(..) | Found::Held(..) => {}
            Found::Delivered(agent, submission, delivered) => {
                self.delivered(agent, submission, delivered).await;
            }
            Found::PendingStored(agent, submission, stored) => {
                self.pending_stored(agent, &submission, stored);
            }
            Found::Kept(report) => self.kept(report),
            Found::Trouble(text) => self.app.say(format!("⚠ {text}")),
        }
    }

    async fn read_older(&mut self) {
        let agent = self.app.current();
        if let Some(pane) = self.app.pane_mut(agent)
            && let Err(error) = pane.read_older(&self.engine).await
        {
            self.app.say(format!("⚠ {error}"));
        }
        self.meet_unlisted().await;
    }

    async fn read_newer(&mut self) {
        let agent = self.app.current();
        if let Some(pane) = self.app.pane_mut(agent)
            && let Err(error) = pane.read_newer(&self.engine).await
        {
            self.app.say(format!("⚠ {error}"));
        }
    }

    /// Shows a row where it stands, whoever wrote it.
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
                self.meet_unlisted().await;
            }
            Ok(false) => self.app.say(format!("⚠ there is no row {row}")),
            Err(error) => self.app.say(format!("⚠ {error}")),
        }
    }

    /// Loads agents that are shown or mentioned and not in the tree: a new child, reaped ones.
    async fn meet_unlisted(&mut self) {
        let mentioned = self.app.pane().map(Pane::mentions).unwrap_or_default();
        for agent in mentioned.into_iter().chain([self.app.current()]) {
            if self.app.roster().get(agent).is_none()
                && let Ok(Some(record)) = self.engine.store().agent(agent).await
                && (record.status == Status::Reaped || agent == self.app.current())
            {
                self.app.meet(record);
            }
        }
    }

    async fn toggle_left(&mut self, rewind: RowRef) {
        let agent = self.app.current();
        if let Some(pane) = self.app.pane_mut(agent)
            && let Err(error) = pane.toggle_left(&self.engine, rewind).await
        {
            self.app.say(format!("⚠ {error}"));
        }
    }

    /// Reads all that is shown anew. What is typed stays.
    async fn reread(&mut self) {
        let agent = self.app.current();
        match Pane::open(&self.engine, agent).await {
            Ok(fresh) => self.app.renew(fresh),
            Err(error) => return self.app.say(format!("⚠ {error}")),
        }
        self.want_tree();
        self.look_around();
        self.scout.list_choices(self.workdir());
    }

    pub(super) fn want_tree(&mut self) {
        let earliest = self.tree_read.map(|read| read + TREE_PAUSE);
        self.tree_due = Some(earliest.unwrap_or_else(Instant::now));
    }

    fn read_tree(&mut self) {
        self.tree_due = None;
        self.tree_read = Some(Instant::now());
        self.scout.read_tree(self.app.current());
    }

    /// What was sent in former runs: the newest of what agents of this session were told.
    async fn read_history(&mut self) {
        match sent_history::sent_before(&self.engine, self.app.current()).await {
            Ok(sent) => self.app.set_history(sent),
            Err(error) => self.app.say(format!("⚠ {error}")),
        }
    }

    fn list(&mut self, typed: &str, directory: &Path) {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let files = entries.take(MOST_ENTRIES).map(|entry| {
            let is_directory = entry.path().is_dir();
            (
                entry.file_name().to_string_lossy().into_owned(),
                is_directory,
            )
        });
        self.app.set_listing(typed, files.collect());
    }

    /// What the status tells beside settings.
    fn look_around(&mut self) {
        let current = self.app.current();
        self.scout.count(current);
        self.scout.look_up_branch(current, self.workdir());
    }

    /// The model of the agent that is shown.
    fn model(&self) -> Option<ModelChoice> {
        self.app.pane()?.agent.state.settings().model.clone()
    }

    /// Where the tools of the agent that is shown run.
    pub(super) fn workdir(&self) -> String {
        let settings = self.app.pane().map(|pane| pane.agent.state.settings());
        let workdir = settings.and_then(|settings| settings.workdir.clone());
        workdir.unwrap_or_default()
    }
}

/// Whether something else is sent after this, although no turn ended.
fn moves_window(update: &Update) -> bool {
    let (Update::Stored(row) | Update::Settled(row)) = update else {
        return false;
    };
    match row.kind.read_as() {
        Some(Kind::Clear | Kind::Rewind | Kind::Summary) => true,
        // Another model has another window, and a budget may be set.
        Some(Kind::Command) => data::read::<CommandData>(row.data.as_deref()).set.is_some(),
        _ => false,
    }
}
