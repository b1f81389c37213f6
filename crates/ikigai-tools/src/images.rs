//! Images for models: checked, and made smaller if providers would refuse them.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder as _, ImageError, ImageFormat, ImageReader, Limits};

use crate::files;

/// Largest file that is read as an image.
pub const MOST_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// Longest edge that is sent as it is. Providers make larger images smaller, or refuse them.
const LONGEST_EDGE: u32 = 1_568;

/// Most bytes that are sent as they are.
const MOST_BYTES: usize = 768 * 1024;

/// Largest edge and memory of an image that is decoded: a small file can claim any size.
const MOST_DECODED_EDGE: u32 = 20_000;
const MOST_DECODED_BYTES: u64 = 512 * 1024 * 1024;

/// Quality of images that are written again, in percent.
const QUALITY: u8 = 85;

/// Formats that all providers take, with media type and name.
const FORMATS: [(ImageFormat, &str, &str); 4] = [
    (ImageFormat::Png, "image/png", "PNG"),
    (ImageFormat::Jpeg, "image/jpeg", "JPEG"),
    (ImageFormat::Gif, "image/gif", "GIF"),
    (ImageFormat::WebP, "image/webp", "WebP"),
];

/// Image that a model can be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentImage {
    /// Encoded bytes.
    pub bytes: Vec<u8>,
    /// Media type of the bytes.
    pub media_type: &'static str,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Description for people and models: format, size, and whether it was made smaller.
    pub description: String,
}

/// Returns true if a file that starts like this is an image that models take.
pub fn is_image(start: &[u8]) -> bool {
    format_of(start).is_some()
}

fn format_of(start: &[u8]) -> Option<(ImageFormat, &'static str, &'static str)> {
    let format = image::guess_format(start).ok()?;
    FORMATS.into_iter().find(|(known, ..)| *known == format)
}

/// Checks an image, and makes a large one smaller. Blocks.
pub fn prepare(bytes: Vec<u8>) -> Result<SentImage, String> {
    let Some((format, media_type, name)) = format_of(&bytes) else {
        return Err("is not a PNG, JPEG, GIF or WebP image".to_owned());
    };
    let failed = |error: ImageError| format!("is a damaged {name} image: {error}");
    let mut image = decode(&bytes, format).map_err(failed)?;
    let (width, height) = (image.width(), image.height());
    let size = files::size(bytes.len() as u64);
    let description = format!("{name}, {width} × {height} pixels, {size}");
    if width.max(height) <= LONGEST_EDGE && bytes.len() <= MOST_BYTES {
        return Ok(SentImage {
            bytes,
            media_type,
            width,
            height,
            description,
        });
    }
    if width.max(height) > LONGEST_EDGE {
        image = image.thumbnail(LONGEST_EDGE, LONGEST_EDGE);
    }
    let (width, height) = (image.width(), image.height());
    let (bytes, media_type) = encode(&image, format).map_err(failed)?;
    let description = format!("{description}, sent with {width} × {height} pixels");
    Ok(SentImage {
        bytes,
        media_type,
        width,
        height,
        description,
    })
}

/// Decodes an image and turns it as its camera says.
fn decode(bytes: &[u8], format: ImageFormat) -> Result<DynamicImage, ImageError> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_image_width = Some(MOST_DECODED_EDGE);
    limits.max_image_height = Some(MOST_DECODED_EDGE);
    limits.max_alloc = Some(MOST_DECODED_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder()?;
    let turned = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder)?;
    image.apply_orientation(turned);
    Ok(image)
}

/// Encodes an image: as PNG if it was none of a camera and is small enough then, else as JPEG.
fn encode(
    image: &DynamicImage,
    format: ImageFormat,
) -> Result<(Vec<u8>, &'static str), ImageError> {
    if format != ImageFormat::Jpeg {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, ImageFormat::Png)?;
        let bytes = bytes.into_inner();
        if bytes.len() <= MOST_BYTES {
            return Ok((bytes, "image/png"));
        }
    }
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, QUALITY);
    image.to_rgb8().write_with_encoder(encoder)?;
    Ok((bytes, "image/jpeg"))
}

#[cfg(test)]
mod tests;
