//! Conversion of a tool's answer to the output of its call.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::connection::{AnswerPart, ToolAnswer};
use crate::output::Collector;
use crate::{Output, arguments, images};

/// Longest line shown to the user, in characters.
const MOST_SHOWN_CHARS: usize = 200;

/// Most images of one answer that the model gets.
const MOST_IMAGES: usize = 8;

/// Converts an answer. Blocks: images are decoded.
pub(super) fn output_of(answer: ToolAnswer) -> Output {
    let mut body = Collector::new();
    let mut sent = Vec::new();
    let mut has_text = false;
    for part in answer.parts {
        let text = match part {
            AnswerPart::Text(text) => {
                has_text = true;
                text
            }
            AnswerPart::Image(_) if sent.len() >= MOST_IMAGES => {
                format!("[image left out: more than {MOST_IMAGES} in one answer]")
            }
            AnswerPart::Image(data) => match decode(&data) {
                Ok(image) => {
                    let text = format!("[image: {}]", image.description);
                    sent.push(image);
                    text
                }
                Err(reason) => format!("[an image that {reason}]"),
            },
            AnswerPart::Other(text) => format!("[{}]", arguments::one_line(&text, 500)),
        };
        body.push(text.as_bytes());
        if !text.ends_with('\n') {
            body.push(b"\n");
        }
    }
    if let Some(structured) = answer.structured.filter(|_| !has_text) {
        body.push(structured.to_string().as_bytes());
    }
    let body = body.into_body();
    let text = String::from_utf8_lossy(&body);
    let lines = text.lines().count();
    let shown = match (answer.is_error, lines) {
        (false, 0) => "done".to_owned(),
        (false, 2..) => format!("{lines} lines"),
        (true, 0) => "failed".to_owned(),
        (_, _) => arguments::one_line(text.lines().next().unwrap_or_default(), MOST_SHOWN_CHARS),
    };
    Output {
        success: !answer.is_error,
        images: sent,
        ..Output::done(body, shown)
    }
}

fn decode(data: &str) -> Result<images::SentImage, String> {
    let compact: String;
    let data = if data.contains(char::is_whitespace) {
        compact = data.split_whitespace().collect();
        &compact
    } else {
        data
    };
    let bytes = STANDARD
        .decode(data)
        .map_err(|_| "is not base64".to_owned())?;
    if bytes.len() as u64 > images::MOST_FILE_BYTES {
        return Err("is too large".to_owned());
    }
    images::prepare(bytes)
}
