//! Rules of images, which the dialects share.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// First bytes of the formats that all providers take.
const FORMATS: [(&str, &[u8]); 4] = [
    ("image/png", b"\x89PNG"),
    ("image/jpeg", b"\xff\xd8\xff"),
    ("image/gif", b"GIF8"),
    ("image/webp", b"RIFF"),
];

/// Checks the bytes of an image against its media type.
pub(super) fn check_image(media_type: &str, base64: &str) -> Result<(), String> {
    let known = FORMATS.iter().find(|(known, _)| *known == media_type);
    let (_, start) = known.ok_or(format!("`{media_type}` is no image that is taken"))?;
    let bytes = STANDARD.decode(base64);
    let bytes = bytes.map_err(|error| format!("an image is no base64: {error}"))?;
    if bytes.starts_with(start) {
        Ok(())
    } else {
        Err(format!("an image is no {media_type}"))
    }
}

/// Checks a `data:` URL of an image.
pub(super) fn check_data_url(url: &str) -> Result<(), String> {
    let parts = url.strip_prefix("data:");
    let parts = parts.and_then(|rest| rest.split_once(";base64,"));
    let (media_type, base64) = parts.ok_or("an image has no data URL")?;
    check_image(media_type, base64)
}
