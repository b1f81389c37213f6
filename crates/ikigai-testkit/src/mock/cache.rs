//! Prompt caches of model servers: tokens of a request that are a prefix of an earlier one.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher as _};

use serde_json::Value;

use crate::wire::WireDialect;
use crate::wire::prompt::{is_marked, prompt_parts};

/// Bytes of a token.
const TOKEN_BYTES: usize = 4;

/// Shortest cached prefix, in tokens.
const SHORTEST_TOKENS: usize = 1024;

/// Step of a cache that needs no marks, in tokens.
const STEP_TOKENS: usize = 128;

/// Blocks before a mark that Anthropic compares with its cache.
const LOOK_BACK_BLOCKS: usize = 20;

/// Prefixes of earlier requests, by hash.
#[derive(Debug, Default)]
pub(super) struct PromptCache {
    prefixes: HashSet<u64>,
}

/// Tokens of one request that were read from the cache, or written to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheUse {
    pub(super) read: usize,
    pub(super) written: usize,
}

impl PromptCache {
    /// Looks a request up, and stores it.
    pub(super) fn look_up(&mut self, spoken: WireDialect, body: &Value) -> CacheUse {
        let parts = prompt_parts(spoken, body);
        match spoken {
            WireDialect::Messages => self.look_up_marked(&parts, &is_marked(body)),
            WireDialect::Chat | WireDialect::Responses | WireDialect::Gemini => {
                self.look_up_steps(&parts)
            }
        }
    }

    /// Looks up as OpenAI and Google do: the longest prefix in steps, without marks.
    fn look_up_steps(&mut self, parts: &[String]) -> CacheUse {
        let text = parts.concat();
        let step = STEP_TOKENS * TOKEN_BYTES;
        let mut hasher = DefaultHasher::new();
        let mut read = 0;
        for (index, chunk) in text.as_bytes().chunks_exact(step).enumerate() {
            hasher.write(chunk);
            if !self.prefixes.insert(hasher.finish()) {
                read = (index + 1) * STEP_TOKENS;
            }
        }
        let read = if read < SHORTEST_TOKENS { 0 } else { read };
        CacheUse { read, written: 0 }
    }

    /// Looks up as Anthropic does: prefixes that end in a mark are written.
    ///
    /// Each mark also finds the end of an earlier one among the blocks before it.
    fn look_up_marked(&mut self, parts: &[String], marks: &[bool]) -> CacheUse {
        let mut hasher = DefaultHasher::new();
        let mut ends = Vec::new();
        let mut bytes = 0;
        for part in parts {
            hasher.write(part.as_bytes());
            bytes += part.len();
            ends.push((hasher.finish(), bytes / TOKEN_BYTES));
        }
        let marked: Vec<usize> = (0..parts.len()).filter(|at| marks[*at]).collect();
        let found = marked.iter().flat_map(|mark| {
            let first = (mark + 1).saturating_sub(LOOK_BACK_BLOCKS);
            (first..=*mark).filter(|at| self.prefixes.contains(&ends[*at].0))
        });
        let read = found.max().map_or(0, |at| ends[at].1);
        let written = marked.last().map_or(0, |at| ends[*at].1);
        let worth_it = marked.iter().filter(|at| ends[**at].1 >= SHORTEST_TOKENS);
        self.prefixes.extend(worth_it.map(|at| ends[*at].0));
        CacheUse {
            read,
            written: written.saturating_sub(read),
        }
    }
}
