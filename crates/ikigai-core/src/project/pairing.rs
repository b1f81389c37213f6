//! Pairing of rows to exchanges: responses with calls, each call with its one result.

use std::collections::{HashMap, HashSet};

use crate::data::{self, Cause, Elide, ForkData, InterruptedData};
use crate::ids::{AgentId, RowRef};
use crate::kind::Kind;
use crate::load::{Loaded, Part};
use crate::message::{Block, BlockItem, Image, Message, Payload, Role};
use crate::project::Target;
use crate::project::budget::{TOKENS_PER_BLOCK, estimate_tokens};
use crate::project::call_names::{CallIds, legal_name};
use crate::project::context_rows::row_name;
use crate::project::paired_result::PairedResult;
use crate::state::AgentState;
use crate::view::{Entry, View};

/// One part of the conversation, at its position.
#[derive(Clone, Debug)]
pub(crate) enum ConversationPart {
    /// A message of the user: a text that is not blank, perhaps images, and its row.
    User(String, Vec<Image>, RowRef),
    /// A text in the user's role that needs no answer: a summary, or a message it keeps.
    Quoted(String, RowRef),
    /// A note in the user's role; never the first part of a request.
    Note(String),
    /// A response of the model.
    Response(PairedResponse),
}

/// Text and calls of one response.
#[derive(Clone, Debug)]
pub(crate) struct PairedResponse {
    key: Option<(AgentId, Option<u64>)>,
    pieces: Vec<ResponsePiece>,
    /// The rows that it was made from.
    rows: Vec<RowRef>,
    /// Rows of them with opaque payloads for the target.
    opaque_rows: Vec<RowRef>,
}

/// A message of a request under construction.
pub(crate) struct Sent {
    pub(crate) message: Message,
    /// Rows to leave out if the provider refuses the message.
    pub(crate) rows: Vec<RowRef>,
    /// True for texts that need no answer.
    pub(crate) quoted: bool,
}

#[derive(Clone, Debug)]
enum ResponsePiece {
    Thinking { text: String, payload: Payload },
    Text { text: String, item: Option<Payload> },
    Call(PairedCall),
}

#[derive(Clone, Debug)]
struct PairedCall {
    at: RowRef,
    /// The id as stored.
    id: String,
    name: String,
    arguments: String,
    item: Option<Payload>,
    result: Option<PairedResult>,
    /// Row of the result.
    answered_by: Option<RowRef>,
}

/// Returns the call that each result of a view answers, by their rows.
///
/// A result that answers no call is left out. Rows that a summary replaces count too: pairing
/// follows the path.
fn pairs_of(view: &View) -> HashMap<RowRef, RowRef> {
    let mut pairs = HashMap::new();
    let mut open = HashSet::new();
    let mut by_id: HashMap<&str, Vec<RowRef>> = HashMap::new();
    for entry in view.entries() {
        let Ok(Loaded::Message(part)) = &entry.loaded else {
            continue;
        };
        match part.message.blocks.last() {
            Some(Block::ToolCall { id, .. }) => {
                open.insert(entry.at());
                by_id.entry(id).or_default().push(entry.at());
            }
            Some(Block::ToolResult { tool_call_id, .. }) => {
                let newest = || {
                    let calls = by_id.get_mut(tool_call_id.as_str())?;
                    while calls.pop_if(|call| !open.contains(call)).is_some() {}
                    calls.pop()
                };
                let answered = part.answers.or_else(newest);
                if let Some(call) = answered.filter(|call| open.remove(call)) {
                    pairs.insert(entry.at(), call);
                }
            }
            Some(Block::Text { .. } | Block::Thinking { .. } | Block::Image(_)) | None => {}
        }
    }
    pairs
}

/// Collects exchanges in the order of the path.
pub(crate) struct Pairing<'a> {
    state: &'a AgentState,
    target: &'a Target,
    omitted: HashSet<RowRef>,
    /// Tool results → lines that are kept of their output.
    elided: HashMap<RowRef, Elide>,
    /// Calls by the rows of their results.
    pairs: HashMap<RowRef, RowRef>,
    /// Results by the rows of their calls.
    results: HashMap<RowRef, (RowRef, PairedResult)>,
    /// Fork rows of children, by the call that made them.
    forks: Vec<(RowRef, AgentId, ForkData)>,
    /// Exchanges with the index of their first entry.
    exchanges: Vec<(usize, ConversationPart)>,
    /// True if the newest conversation row was part of the newest response.
    in_response: bool,
}

const OMITTED: &str = "[This was left out because the provider refused it.]";

impl<'a> Pairing<'a> {
    pub(crate) fn new(
        state: &'a AgentState,
        view: &View,
        target: &'a Target,
        omitted: HashSet<RowRef>,
        elided: HashMap<RowRef, Elide>,
    ) -> Self {
        let own = state.fork().map(|fork| (state.agent(), fork.clone()));
        let forks = own
            .into_iter()
            .filter_map(|(agent, fork)| Some((fork.call?, agent, fork)));
        Self {
            state,
            target,
            omitted,
            elided,
            pairs: pairs_of(view),
            results: HashMap::new(),
            forks: forks.collect(),
            exchanges: Vec::new(),
            in_response: false,
        }
    }

    /// Skips an entry that a context row replaces.
    pub(crate) fn skip(&mut self) {
        self.in_response = false;
    }

    /// Adds a text that a context row sends at the entry `index`.
    pub(crate) fn quote(&mut self, index: usize, text: String, row: RowRef) {
        self.exchanges
            .push((index, ConversationPart::Quoted(text, row)));
    }

    /// Adds the entry at `index`.
    pub(crate) fn add(&mut self, index: usize, entry: &Entry) {
        match &entry.loaded {
            Ok(Loaded::Message(part)) => self.add_message(index, entry, part),
            Ok(Loaded::Nothing) => self.add_other(index, entry),
            Err(_) => {}
        }
    }

    fn add_other(&mut self, index: usize, entry: &Entry) {
        let data = entry.row.data.as_deref();
        match entry.kind() {
            Some(Kind::Interrupted) => {
                let cause = data::read::<InterruptedData>(data).cause;
                self.in_response = false;
                self.exchanges
                    .push((index, ConversationPart::Note(note_for(cause).to_owned())));
            }
            Some(Kind::Fork) if entry.at().agent != self.state.agent() => {
                let fork: ForkData = data::read(data);
                if let Some(call) = fork.call
                    && fork.parent_uuid.is_some()
                {
                    self.forks.push((call, entry.at().agent, fork));
                }
            }
            Some(
                Kind::System
                | Kind::User
                | Kind::Assistant
                | Kind::ToolCall
                | Kind::ToolResult
                | Kind::Clear
                | Kind::Mark
                | Kind::Rewind
                | Kind::Fork
                | Kind::Command
                | Kind::AgentKilled
                | Kind::Usage
                | Kind::Error
                | Kind::Summary
                | Kind::Process
                | Kind::Files,
            )
            | None => {}
        }
    }

    fn add_message(&mut self, index: usize, entry: &Entry, part: &Part) {
        let omitted = self.omitted.contains(&entry.at());
        match part.message.role {
            Role::User => {
                let text = if omitted {
                    OMITTED.to_owned()
                } else {
                    text_of(&part.message)
                };
                let images = if omitted {
                    Vec::new()
                } else {
                    images_of(&part.message)
                };
                self.in_response = false;
                if !text.trim().is_empty() {
                    self.exchanges
                        .push((index, ConversationPart::User(text, images, entry.at())));
                }
            }
            Role::Assistant => self.add_to_response(index, entry.at(), part, omitted),
            Role::Tool => self.add_result(entry.at(), part, omitted),
        }
    }

    fn add_to_response(&mut self, index: usize, at: RowRef, part: &Part, omitted: bool) {
        let key = Some((at.agent, part.response));
        let goes_on = self.in_response
            && matches!(self.exchanges.last(), Some((_, ConversationPart::Response(last))) if last.key == key);
        if !goes_on {
            let response = PairedResponse {
                key,
                pieces: Vec::new(),
                rows: Vec::new(),
                opaque_rows: Vec::new(),
            };
            self.exchanges
                .push((index, ConversationPart::Response(response)));
        }
        self.in_response = true;
        let has_opaque = part.message.blocks.len() > 1 || !part.message.metadata.is_empty();
        let target = self.target;
        if let Some((_, ConversationPart::Response(response))) = self.exchanges.last_mut() {
            response.rows.push(at);
            if omitted && !has_opaque {
                response.add_omitted(part);
            } else {
                response.add(at, &part.message, |tag| !omitted && is_for(tag, target));
            }
        }
    }

    fn add_result(&mut self, at: RowRef, part: &Part, omitted: bool) {
        self.in_response = false;
        if let Some(Block::ToolResult {
            content,
            is_error,
            images,
            ..
        }) = part.message.blocks.first()
            && let Some(call) = self.pairs.get(&at)
        {
            let result = if omitted {
                PairedResult {
                    content: OMITTED.to_owned(),
                    is_error: *is_error,
                    images: Vec::new(),
                }
            } else {
                let whole = PairedResult {
                    content: content.clone(),
                    is_error: *is_error,
                    images: images.clone(),
                };
                let lines = self.elided.get(&at);
                let name = row_name(at, self.state.agent());
                let short = lines.and_then(|lines| whole.elide(lines, &name));
                short.unwrap_or(whole)
            };
            self.results.insert(*call, (at, result));
        }
    }

    /// Returns the exchanges with the indices of their first entries; every call has a result.
    pub(crate) fn finish(mut self) -> Vec<(usize, ConversationPart)> {
        let mut exchanges = std::mem::take(&mut self.exchanges);
        for (_, exchange) in &mut exchanges {
            if let ConversationPart::Response(response) = exchange {
                for piece in &mut response.pieces {
                    if let ResponsePiece::Call(call) = piece {
                        call.result = Some(match self.results.remove(&call.at) {
                            Some((at, result)) => {
                                call.answered_by = Some(at);
                                result
                            }
                            None => self.outcome_of_open(call.at),
                        });
                    }
                }
            }
        }
        exchanges
    }

    /// Returns the text that is sent for a call without a recorded outcome.
    fn outcome_of_open(&self, call: RowRef) -> PairedResult {
        if call.agent == self.state.agent() {
            return PairedResult {
                content: "No outcome was recorded for this call.".to_owned(),
                is_error: true,
                images: Vec::new(),
            };
        }
        let made = self.forks.iter().find(|(by, ..)| *by == call);
        let said = made.map_or_else(
            || "This call belongs to your parent. Do not repeat it.".to_owned(),
            |(_, child, fork)| {
                let settings = fork.settings.as_ref();
                let name = settings.and_then(|settings| settings.name.as_deref());
                let name = name.unwrap_or_default();
                let parent = fork.parent_name.as_deref().unwrap_or_default();
                format!("You are {name} ({child}), the child made by this call; your parent is {parent}.")
            },
        );
        PairedResult {
            content: said,
            ..PairedResult::default()
        }
    }
}

fn is_for(tag: &Payload, target: &Target) -> bool {
    tag.provider == target.provider && tag.model == target.model
}

fn note_for(cause: Option<Cause>) -> &'static str {
    match cause {
        Some(Cause::User) => "[The user interrupted this turn.]",
        Some(Cause::Exit) => "[The program was left before this turn was finished.]",
        Some(Cause::Crash) => "[The program stopped unexpectedly before this turn was finished.]",
        Some(Cause::Kill) => "[This agent was killed before this turn was finished.]",
        None => "[This turn was interrupted.]",
    }
}

fn text_of(message: &Message) -> String {
    match message.blocks.first() {
        Some(Block::Text { text }) => text.clone(),
        _ => String::new(),
    }
}

fn images_of(message: &Message) -> Vec<Image> {
    let images = message.blocks.iter().filter_map(|block| match block {
        Block::Image(image) => Some(image.clone()),
        _ => None,
    });
    images.collect()
}

impl PairedResponse {
    fn add(&mut self, at: RowRef, message: &Message, sendable: impl Fn(&Payload) -> bool) {
        let item_of = |index: usize| {
            let item = message.metadata.iter().find(|item| item.block == index);
            item.map(|item| item.item.clone()).filter(&sendable)
        };
        let items = message.metadata.iter().map(|item| &item.item);
        let thoughts = message.blocks.iter().filter_map(|block| match block {
            Block::Thinking { payload, .. } => payload.as_ref(),
            _ => None,
        });
        if items.chain(thoughts).any(&sendable) {
            self.opaque_rows.push(at);
        }
        for (index, block) in message.blocks.iter().enumerate() {
            match block {
                Block::Thinking {
                    text,
                    payload: Some(payload),
                } if sendable(payload) => {
                    self.pieces.push(ResponsePiece::Thinking {
                        text: text.clone(),
                        payload: payload.clone(),
                    });
                }
                Block::Text { text } if !text.trim().is_empty() => {
                    self.pieces.push(ResponsePiece::Text {
                        text: text.clone(),
                        item: item_of(index),
                    });
                }
                Block::ToolCall {
                    id,
                    name,
                    arguments,
                } => self.pieces.push(ResponsePiece::Call(PairedCall {
                    at,
                    id: id.clone(),
                    name: name.clone(),
                    arguments: arguments.clone(),
                    item: item_of(index),
                    result: None,
                    answered_by: None,
                })),
                Block::Thinking { .. }
                | Block::Text { .. }
                | Block::ToolResult { .. }
                | Block::Image(_) => {}
            }
        }
    }

    /// Adds a note for a row that a provider refused; a call goes with its result.
    fn add_omitted(&mut self, part: &Part) {
        if matches!(part.message.blocks.first(), Some(Block::Text { .. })) {
            self.pieces.push(ResponsePiece::Text {
                text: OMITTED.to_owned(),
                item: None,
            });
        }
    }

    /// Returns the tokens of the blocks that it becomes.
    pub(crate) fn tokens(&self) -> u64 {
        if !self.speaks() {
            return 0;
        }
        let of_piece = |piece: &ResponsePiece| match piece {
            ResponsePiece::Thinking { text, payload } => {
                estimate_tokens(text) + estimate_tokens(&payload.payload) + TOKENS_PER_BLOCK
            }
            ResponsePiece::Text { text, .. } => estimate_tokens(text) + TOKENS_PER_BLOCK,
            ResponsePiece::Call(call) => {
                let result = call.result.as_ref().map_or(0, PairedResult::tokens);
                estimate_tokens(&call.arguments) + TOKENS_PER_BLOCK + result
            }
        };
        self.pieces.iter().map(of_piece).sum()
    }

    /// Returns true if it has more than thinking, so that it is sent.
    pub(crate) fn speaks(&self) -> bool {
        let speaks = |piece: &ResponsePiece| !matches!(piece, ResponsePiece::Thinking { .. });
        self.pieces.iter().any(speaks)
    }

    /// Returns the results with their rows, in call order.
    pub(crate) fn results(&self) -> impl Iterator<Item = (RowRef, &PairedResult)> {
        self.pieces.iter().filter_map(|piece| match piece {
            ResponsePiece::Call(call) => Some((call.answered_by?, call.result.as_ref()?)),
            ResponsePiece::Thinking { .. } | ResponsePiece::Text { .. } => None,
        })
    }

    /// Returns the results, for cutting their texts.
    pub(crate) fn results_mut(&mut self) -> impl Iterator<Item = &mut PairedResult> {
        self.pieces.iter_mut().filter_map(|piece| match piece {
            ResponsePiece::Call(call) => call.result.as_mut(),
            ResponsePiece::Thinking { .. } | ResponsePiece::Text { .. } => None,
        })
    }

    /// Appends the response to `sent`: an assistant message, and a tool message with results.
    ///
    /// The results are in call order.
    pub(crate) fn emit(self, ids: &mut CallIds, sent: &mut Vec<Sent>) {
        if !self.speaks() {
            return;
        }
        // Two adjacent responses are one turn of the assistant.
        if sent
            .last()
            .is_none_or(|last| last.message.role != Role::Assistant)
        {
            sent.push(Sent::nothing(Role::Assistant));
        }
        let mut results = Sent::nothing(Role::Tool);
        if let Some(Sent { message, rows, .. }) = sent.last_mut() {
            // A provider refuses only opaque payloads of an assistant's message.
            rows.extend(if self.opaque_rows.is_empty() {
                self.rows
            } else {
                self.opaque_rows
            });
            for piece in self.pieces {
                let (block, item) = piece.into_block(ids, &mut results);
                if let Some(item) = item {
                    message.metadata.push(BlockItem {
                        block: message.blocks.len(),
                        item,
                    });
                }
                message.blocks.push(block);
            }
        }
        if !results.message.blocks.is_empty() {
            sent.push(results);
        }
    }
}

impl Sent {
    fn nothing(role: Role) -> Self {
        let message = Message {
            role,
            blocks: Vec::new(),
            metadata: Vec::new(),
        };
        Self {
            message,
            rows: Vec::new(),
            quoted: false,
        }
    }
}

impl ResponsePiece {
    fn into_block(self, ids: &mut CallIds, results: &mut Sent) -> (Block, Option<Payload>) {
        match self {
            Self::Thinking { text, payload } => (
                Block::Thinking {
                    text,
                    payload: Some(payload),
                },
                None,
            ),
            Self::Text { text, item } => (Block::Text { text }, item),
            Self::Call(call) => {
                let id = ids.name(&call.id, call.at);
                let result = call.result.unwrap_or_default();
                results.rows.extend(call.answered_by);
                results.message.blocks.push(Block::ToolResult {
                    tool_call_id: id.clone(),
                    content: result.content,
                    is_error: result.is_error,
                    images: result.images,
                });
                let name = legal_name(call.name);
                (
                    Block::ToolCall {
                        id,
                        name,
                        arguments: call.arguments,
                    },
                    call.item,
                )
            }
        }
    }
}
