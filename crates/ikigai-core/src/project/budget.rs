//! Token estimates and budgets.

use std::fmt;

use crate::message::{Block, Image};
use crate::project::{Request, Target, ToolSpec};
use crate::state::AgentState;

/// Limits on the size of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Tokens that the model accepts: its context without the room for the answer.
    pub window: u64,
    /// Tokens beyond which a turn starts with a cut; never more than `window`.
    pub cap: u64,
}

impl Budget {
    /// Makes a budget of `window` tokens, of which `cap` are used if one is set.
    pub fn new(window: u64, cap: Option<u64>) -> Self {
        Self {
            window,
            cap: cap.unwrap_or(window).min(window),
        }
    }
}

/// Tokens of a block besides its text: role, id, name and brackets.
pub(crate) const TOKENS_PER_BLOCK: u64 = 8;

/// Pixels of an image that count as a token.
const PIXELS_PER_TOKEN: u64 = 750;

/// Least tokens of an image, and most: providers make larger ones smaller.
const LEAST_IMAGE_TOKENS: u64 = 85;
const MOST_IMAGE_TOKENS: u64 = 3_300;

/// Estimates the tokens of a text: four ASCII bytes make one, any other character is one.
pub fn estimate_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let others = text.bytes().filter(|byte| (0xC0..).contains(byte)).count() as u64;
    ascii.div_ceil(4) + others
}

/// Quarters of a token that [`estimate_tokens`] counts for a character.
fn quarter_tokens(character: char) -> u64 {
    if character.is_ascii() { 1 } else { 4 }
}

/// Returns the longest beginning of a text that is estimated at no more than `tokens`.
pub fn prefix_within(text: &str, tokens: u64) -> &str {
    let mut room = tokens.saturating_mul(4);
    for (at, character) in text.char_indices() {
        let Some(left) = room.checked_sub(quarter_tokens(character)) else {
            return &text[..at];
        };
        room = left;
    }
    text
}

/// Returns the longest end of a text that is estimated at no more than `tokens`.
pub fn suffix_within(text: &str, tokens: u64) -> &str {
    let mut room = tokens.saturating_mul(4);
    let mut start = text.len();
    for (at, character) in text.char_indices().rev() {
        let Some(left) = room.checked_sub(quarter_tokens(character)) else {
            break;
        };
        (room, start) = (left, at);
    }
    &text[start..]
}

/// Part of every request, besides the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// The system prompt.
    System,
    /// A pinned document, by its path.
    Pin(String),
    /// A tool, by its name.
    Tool(String),
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system prompt"),
            Self::Pin(path) => write!(f, "pin {path}"),
            Self::Tool(name) => write!(f, "tool {name}"),
        }
    }
}

/// Returns the fixed parts of every request with their tokens.
pub(crate) fn fixed_parts(state: &AgentState, target: &Target) -> Vec<(Fixed, u64)> {
    let prompt = (
        Fixed::System,
        estimate_tokens(state.system().unwrap_or_default()),
    );
    let pins = pins_in_request(state, target).map(|(path, text)| {
        (
            Fixed::Pin(path.to_owned()),
            estimate_tokens(path) + estimate_tokens(text) + TOKENS_PER_BLOCK,
        )
    });
    let tools = target
        .tools
        .iter()
        .map(|tool| (Fixed::Tool(tool.name.clone()), tool_tokens(tool)));
    std::iter::once(prompt).chain(pins).chain(tools).collect()
}

fn tool_tokens(tool: &ToolSpec) -> u64 {
    let words = estimate_tokens(&tool.name) + estimate_tokens(&tool.description);
    words + estimate_tokens(&tool.parameters.to_string()) + TOKENS_PER_BLOCK
}

/// Estimates the tokens of a whole request, as the window does.
pub fn estimate_request(request: &Request) -> u64 {
    let system = estimate_tokens(request.system.as_deref().unwrap_or_default());
    let tools: u64 = request.tools.iter().map(tool_tokens).sum();
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    system + tools + blocks.map(block_tokens).sum::<u64>()
}

/// Estimates the tokens of an image as the providers that count most: by its pixels.
pub(crate) fn image_tokens(image: &Image) -> u64 {
    let pixels = u64::from(image.width) * u64::from(image.height);
    match pixels {
        0 => MOST_IMAGE_TOKENS,
        pixels => (pixels / PIXELS_PER_TOKEN).clamp(LEAST_IMAGE_TOKENS, MOST_IMAGE_TOKENS),
    }
}

/// Estimates the tokens of a block.
pub fn block_tokens(block: &Block) -> u64 {
    let texts = match block {
        Block::Text { text } => estimate_tokens(text),
        Block::ToolCall { arguments, .. } => estimate_tokens(arguments),
        Block::ToolResult {
            content, images, ..
        } => estimate_tokens(content) + images.iter().map(image_tokens).sum::<u64>(),
        Block::Image(image) => image_tokens(image),
        Block::Thinking { text, payload } => {
            let payload = payload.as_ref().map(|payload| payload.payload.as_str());
            estimate_tokens(text) + estimate_tokens(payload.unwrap_or_default())
        }
    };
    texts + TOKENS_PER_BLOCK
}

/// Returns the tokens of all fixed parts.
pub(crate) fn fixed_tokens(state: &AgentState, target: &Target) -> u64 {
    fixed_parts(state, target)
        .iter()
        .map(|(_, tokens)| tokens)
        .sum()
}

/// Returns the pinned documents that can be read, in pin order.
pub(crate) fn pins_in_request<'a>(
    state: &'a AgentState,
    target: &'a Target,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    state.prefix_pins().iter().filter_map(|pin| {
        let text = target.documents.get(pin.hash.as_deref()?)?;
        Some((pin.path.as_deref()?, text.as_str()))
    })
}
