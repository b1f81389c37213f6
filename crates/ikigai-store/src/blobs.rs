//! Large content, stored once under the hash of its bytes.

use ikigai_core::find::SEARCHED_BYTES;
use sha2::{Digest, Sha256};

use crate::batch::{Batch, Effect};
use crate::error::CommitError;
use crate::log::Log;
use crate::records::BlobHash;

/// Size of one part: small enough that a large blob does not delay other writers for long.
pub const PART_BYTES: usize = 256 * 1024;

/// Number of parts at each end of a blob that are searched.
pub(crate) const END_PARTS: usize = SEARCHED_BYTES / 2 / PART_BYTES;

/// Parts per commit; between two commits other batches get their turn.
const PARTS_PER_COMMIT: usize = 4;

/// Small contents per commit.
const MOST_BLOBS_PER_COMMIT: usize = 500;

/// Returns the hash under which the bytes are stored.
pub fn hash_of(bytes: &[u8]) -> BlobHash {
    BlobHash(Sha256::digest(bytes).into())
}

/// Effects that store the bytes, one for each part. Empty content is one empty part.
pub fn parts_of(bytes: &[u8]) -> Vec<Effect> {
    parts(hash_of(bytes), bytes).collect()
}

fn parts(hash: BlobHash, bytes: &[u8]) -> impl Iterator<Item = Effect> {
    let empty = bytes.is_empty().then_some(bytes);
    let chunks = bytes.chunks(PART_BYTES).chain(empty);
    (0_u32..)
        .zip(chunks)
        .map(move |(part, chunk)| Effect::PutBlobPart {
            hash,
            part,
            bytes: chunk.to_vec(),
        })
}

/// Stores the bytes a few parts at a time and returns their hash.
///
/// Call it before you commit the row that names the blob. If it fails or is dropped half-way, the
/// parts stored so far are no blob; storing the same bytes again completes them.
pub async fn put_blob(store: &dyn Log, bytes: &[u8]) -> Result<BlobHash, CommitError> {
    let hash = hash_of(bytes);
    let mut parts = parts(hash, bytes);
    loop {
        let with: Vec<Effect> = parts.by_ref().take(PARTS_PER_COMMIT).collect();
        if with.is_empty() {
            return Ok(hash);
        }
        commit_parts(store, with).await?;
    }
}

/// Stores several contents, as many parts in one commit as fit.
///
/// Call it before you commit the row that names them.
pub async fn put_blobs(store: &dyn Log, contents: &[Vec<u8>]) -> Result<(), CommitError> {
    let mut with = Vec::new();
    let mut bytes = 0;
    for content in contents {
        for part in parts(hash_of(content), content) {
            bytes += match &part {
                Effect::PutBlobPart { bytes, .. } => bytes.len(),
                _ => 0,
            };
            with.push(part);
            if bytes >= PARTS_PER_COMMIT * PART_BYTES || with.len() >= MOST_BLOBS_PER_COMMIT {
                bytes = 0;
                commit_parts(store, std::mem::take(&mut with)).await?;
            }
        }
    }
    commit_parts(store, with).await
}

async fn commit_parts(store: &dyn Log, with: Vec<Effect>) -> Result<(), CommitError> {
    if with.is_empty() {
        return Ok(());
    }
    let batch = Batch {
        with,
        ..Batch::default()
    };
    store.commit(batch).await.map(drop)
}

/// Joins the parts of a blob, given in order; `None` unless they are complete.
pub fn join_parts(
    hash: BlobHash,
    parts: impl IntoIterator<Item = (u32, Vec<u8>)>,
) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut found = false;
    for (expected, (part, chunk)) in (0_u32..).zip(parts) {
        if part != expected {
            return None;
        }
        found = true;
        bytes.extend_from_slice(&chunk);
    }
    (found && hash_of(&bytes) == hash).then_some(bytes)
}
