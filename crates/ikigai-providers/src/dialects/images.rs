//! Images on the wire: base64 of the stored bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ikigai_core::Request;
use ikigai_core::message::Image;

/// Text in place of an image that the request has no bytes for: the model takes none, or too many
/// newer ones follow.
pub(super) const NOT_SHOWN: &str = "[An image was here that is not sent to you.]";

/// Returns an image in base64; none if the request has no bytes for it.
pub(super) fn base64_of(request: &Request, image: &Image) -> Option<String> {
    let bytes = request.images.get(image)?;
    Some(STANDARD.encode(bytes))
}

/// Returns an image as a `data:` URL; none if the request has no bytes for it.
pub(super) fn data_url(request: &Request, image: &Image) -> Option<String> {
    let base64 = base64_of(request, image)?;
    Some(format!("data:{};base64,{base64}", image.media_type))
}
