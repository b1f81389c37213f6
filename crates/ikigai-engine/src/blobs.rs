//! Outputs and images as blobs: stored before their rows, and images loaded for requests.

use std::sync::Arc;

use ikigai_core::data::{self, BlobRef, StoredImage, ToolResultData, UserData};
use ikigai_core::message::Image;
use ikigai_core::{Kind, Request, Row};
use ikigai_providers::Model;
use ikigai_store::{ReadLog, StoreError};
use ikigai_tools::images::SentImage;

use crate::EngineError;
use crate::frontend::FrontEnd;
use crate::ledger::Ledger;

/// Bytes of images after which a new part of a conversation begins.
///
/// A request has the images of the newest two parts, which is less than providers accept. Parts
/// change seldom, so that most requests begin with the bytes of the one before.
const PART_BYTES: u64 = 10 * 1024 * 1024;

/// Bytes that an image counts at least, because providers also limit the number of images.
const LEAST_BYTES: u64 = PART_BYTES / 45;

/// Stores the whole output of a call, if the row has only a part of it.
pub(crate) async fn store_output(
    ledger: &Ledger,
    output: Option<&[u8]>,
    front: &mut FrontEnd<'_>,
) -> Result<Option<BlobRef>, EngineError> {
    let Some(bytes) = output else {
        return Ok(None);
    };
    Ok(Some(BlobRef {
        hash: Some(ledger.put_blob(bytes, front).await?),
        bytes: Some(bytes.len() as u64),
    }))
}

/// Stores the images of a call.
pub(crate) async fn store_images(
    ledger: &Ledger,
    images: &[SentImage],
    front: &mut FrontEnd<'_>,
) -> Result<Vec<StoredImage>, EngineError> {
    let mut stored = Vec::new();
    for image in images {
        let hash = ledger.put_blob(&image.bytes, front).await?;
        stored.push(stored_image(image, hash));
    }
    Ok(stored)
}

pub(crate) fn images_in(row: &Row) -> Vec<StoredImage> {
    let data = row.data.as_deref();
    let images = match row.kind.read_as() {
        Some(Kind::User) => data::read::<UserData>(data).images,
        Some(Kind::ToolResult) => data::read::<ToolResultData>(data).images,
        _ => None,
    };
    images.unwrap_or_default()
}

/// Builds the reference to a stored image.
pub(crate) fn stored_image(image: &SentImage, hash: String) -> StoredImage {
    StoredImage {
        hash: Some(hash),
        r#type: Some(image.media_type.to_owned()),
        bytes: Some(image.bytes.len() as u64),
        width: Some(image.width),
        height: Some(image.height),
    }
}

/// Loads the images of a request that its model is sent. Providers write a note for the others.
pub(crate) async fn load_images(
    store: &dyn ReadLog,
    model: &dyn Model,
    request: &mut Request,
) -> Result<(), StoreError> {
    if !model.takes_images() {
        return Ok(());
    }
    let images: Vec<Image> = request.shown_images().cloned().collect();
    for image in newest_parts(&images) {
        if request.images.get(image).is_none()
            && let Ok(hash) = image.hash.parse()
            && let Some(bytes) = store.blob(hash).await?
        {
            request.images.insert(image.hash.clone(), Arc::from(bytes));
        }
    }
    Ok(())
}

/// Returns the images of the newest two parts.
fn newest_parts(images: &[Image]) -> &[Image] {
    let mut before = 0;
    let parts = images.iter().map(|image| {
        let part = before / PART_BYTES;
        before += image.bytes.max(LEAST_BYTES);
        part
    });
    let parts: Vec<_> = parts.collect();
    let newest = parts.last().copied().unwrap_or(0);
    let first = parts.partition_point(|part| part + 1 < newest);
    &images[first..]
}

#[cfg(test)]
mod tests;
