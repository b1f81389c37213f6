//! Cache of servers' tools and revisions, so that a start need not wait for them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::connection::{ListedTool, McpRevision};
use crate::files::sha256_hex;
use crate::owner_file;

/// Format version; changes if older files would be misread.
const VERSION: u32 = 1;

/// Largest cache file; a larger one is ignored.
const MOST_BYTES: u64 = 32 * 1024 * 1024;

/// Most servers that are remembered.
const MOST_SERVERS: usize = 200;

/// Cache in memory and in a file.
#[derive(Debug, Default)]
pub(crate) struct ListCache {
    path: Option<PathBuf>,
    lists: Mutex<Option<CacheFile>>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct CacheFile {
    version: u32,
    servers: BTreeMap<String, CachedList>,
}

/// Tools and revision of a server.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct CachedList {
    pub(crate) revision: McpRevision,
    tools: Vec<CachedMcpTool>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct CachedMcpTool {
    name: String,
    description: String,
    schema: Map<String, Value>,
    reads: bool,
}

impl CachedList {
    pub(crate) fn new(revision: McpRevision, tools: &[ListedTool]) -> Self {
        let tools = tools.iter().cloned().map(|tool| CachedMcpTool {
            name: tool.name,
            description: tool.description,
            schema: tool.schema,
            reads: tool.is_reading,
        });
        Self {
            revision,
            tools: tools.collect(),
        }
    }

    pub(crate) fn tools(&self) -> Vec<ListedTool> {
        let tools = self.tools.iter().cloned().map(|tool| ListedTool {
            name: tool.name,
            description: tool.description,
            schema: tool.schema,
            is_reading: tool.reads,
        });
        tools.collect()
    }
}

impl ListCache {
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Self {
            path,
            lists: Mutex::default(),
        }
    }

    /// Returns what is known about a server.
    pub(crate) async fn get(self: &Arc<Self>, key: &str) -> Option<CachedList> {
        let (cache, key) = (self.clone(), key.to_owned());
        let found =
            tokio::task::spawn_blocking(move || cache.with(|file| file.servers.get(&key).cloned()));
        found.await.ok().flatten()
    }

    /// Remembers a server. A failure to save costs a start that waits.
    pub(crate) async fn put(self: &Arc<Self>, key: String, list: CachedList) {
        let cache = self.clone();
        let saved = tokio::task::spawn_blocking(move || {
            let changed = cache.with(|file| {
                if file.servers.get(&key) == Some(&list) {
                    return None;
                }
                if file.servers.len() >= MOST_SERVERS && !file.servers.contains_key(&key) {
                    file.servers.pop_first();
                }
                file.servers.insert(key, list);
                serde_json::to_vec(file).ok()
            });
            if let (Some(bytes), Some(path)) = (changed, &cache.path) {
                let _ = owner_file::write(path, &bytes);
            }
        });
        let _ = saved.await;
    }

    /// Reads or changes the cache, which is loaded at first. Blocks.
    fn with<T>(&self, act: impl FnOnce(&mut CacheFile) -> T) -> T {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        act(lists.get_or_insert_with(|| self.path.as_deref().map(load).unwrap_or_default()))
    }
}

/// Returns the key of a server: its name and how it is reached, without secrets.
pub(crate) fn key_of(name: &str, described: &str) -> String {
    sha256_hex(format!("{name}\0{described}").as_bytes())
}

/// Reads the file; an empty cache if it is missing or damaged.
fn load(path: &Path) -> CacheFile {
    let empty = CacheFile {
        version: VERSION,
        ..CacheFile::default()
    };
    if !fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MOST_BYTES) {
        return empty;
    }
    let read = fs::read(path).ok();
    read.and_then(|bytes| serde_json::from_slice::<CacheFile>(&bytes).ok())
        .filter(|file| file.version == VERSION)
        .unwrap_or(empty)
}
