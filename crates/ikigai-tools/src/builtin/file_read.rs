//! `file_read`: shows images, and numbered lines of a file or stored output, page by page.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_core::project::{ToolFacts, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::arguments::{self, Aliases, BadArguments, ToolArguments};
use crate::files::{self, FileError, MOST_HASHED_BYTES};
use crate::images;
use crate::output::{MOST_SENT_BYTES, clean, visible};
use crate::paths::Located;
use crate::permission::directory_pattern;
use crate::{CallContext, Need, Output, Place, Prepared, Run, Tool, Touches, paths};

/// Name of the tool.
pub(super) const NAME: &str = "file_read";

/// Facts about its calls.
pub(super) const FACTS: ToolFacts = ToolFacts::READING;

/// Default number of lines.
const LINES: u64 = 2_000;

/// Most bytes shown of one line among several. An invalid UTF-8 byte becomes three.
const MOST_LINE_BYTES: usize = 2_000;

/// Most bytes shown of a line that has the page to itself.
const MOST_LONE_BYTES: usize = 10_000;

/// Size at which a page takes no further line.
///
/// The rest is room for the last line and for remarks, so that a page is never cut again.
const FULL_PAGE_BYTES: usize = MOST_SENT_BYTES - 8 * 1024;

/// Size of a file's start that decides between text and binary.
const LOOKED_AT_BYTES: usize = 8 * 1024;

/// Long enough for a large file on a slow disk.
const DEADLINE: Duration = Duration::from_mins(1);

/// Prefix of a path that names a stored output.
pub(super) const BLOB: &str = "blob:";

/// Fields of other programs: the last line, and a list of first and last line.
const END_LINE: &str = "end_line";
const VIEW_RANGE: &str = "view_range";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileReadArguments {
    /// The file; relative paths start in the working directory. `blob:HASH` is a stored output.
    file_path: String,
    /// Number of the first line to show, from 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Number of lines to show; 2000 if not given.
    #[serde(default)]
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Shows only line `offset`, from this byte of it on (from 1): for lines too long to be shown
    /// whole.
    #[serde(default)]
    #[schemars(range(min = 1))]
    column: Option<u64>,
}

impl ToolArguments for FileReadArguments {
    const ALIASES: Aliases = &[
        ("path", "file_path"),
        ("file", "file_path"),
        ("filename", "file_path"),
        ("filepath", "file_path"),
        ("line", "offset"),
        ("start_line", "offset"),
        ("end_line", END_LINE),
        ("view_range", VIEW_RANGE),
    ];

    fn convert(fields: &mut Map<String, Value>) -> Result<(), String> {
        let number = |value: &Value| {
            let text = value.as_str().and_then(|text| text.trim().parse().ok());
            value.as_u64().or(text)
        };
        if let Some(range) = fields.remove(VIEW_RANGE) {
            let Some([first, last]) = range.as_array().map(Vec::as_slice) else {
                return Err(format!("`{VIEW_RANGE}` must be a list of two line numbers"));
            };
            fields.insert("offset".to_owned(), number(first).into());
            fields.insert(END_LINE.to_owned(), last.clone());
        }
        // Other programs count lines from 0, or mean the first one.
        if fields.get("offset").and_then(number) == Some(0) {
            fields.insert("offset".to_owned(), 1.into());
        }
        if let Some(last) = fields.remove(END_LINE) {
            let first = fields.get("offset").and_then(number).unwrap_or(1);
            // A last line of -1 is the end of the file.
            if let Some(count) = number(&last).and_then(|last| (last + 1).checked_sub(first)) {
                fields.entry("limit").or_insert(count.into());
            }
        }
        Ok(())
    }
}

pub(super) struct FileRead;

impl Tool for FileRead {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Reads a text file or an image (PNG, JPEG, GIF, WebP). Shows numbered \
                          lines without their line endings; long files come in pages."
                .to_owned(),
            parameters: arguments::schema_of::<FileReadArguments>(),
            facts: FACTS,
        }
    }

    fn prepare(&self, text: &str, place: &Place) -> Result<Prepared, BadArguments> {
        let call = arguments::read::<FileReadArguments>(text)?;
        let (arguments, shown) = (call.values, call.shown);
        let page = LineRange::of(&arguments)?;
        if let Some(hash) = arguments.file_path.strip_prefix(BLOB) {
            return Ok(blob(hash, page, shown)?.with_remark(call.remark));
        }
        let located = paths::locate(place, &arguments.file_path)?;
        let path = &located.path;
        Ok(Prepared {
            class: EffectClass::Read,
            touches: Touches::reading([path.clone()]),
            shown,
            subject: paths::display_path(place, path),
            pattern: directory_pattern(place, path),
            preview: None,
            deadline: DEADLINE,
            needs: Vec::new(),
            unconfined: None,
            run: Run::Blocking(Box::new(move |context| read_file(context, &located, &page))),
        }
        .with_remark(call.remark))
    }
}

/// Range of lines to show.
struct LineRange {
    /// First line, from 1.
    first: u64,
    /// Number of lines.
    count: u64,
    /// First byte of the first line, from 0; the page then has only this line.
    column: Option<u64>,
}

impl LineRange {
    fn of(arguments: &FileReadArguments) -> Result<Self, BadArguments> {
        let from_one = |name: &str, value: Option<u64>| match value {
            Some(0) => Err(BadArguments(format!("`{name}` counts from 1"))),
            value => Ok(value),
        };
        let column = from_one("column", arguments.column)?.map(|column| column - 1);
        let count = from_one("limit", arguments.limit)?.unwrap_or(LINES);
        Ok(Self {
            first: from_one("offset", arguments.offset)?.unwrap_or(1),
            count: if column.is_some() { 1 } else { count },
            column,
        })
    }

    /// Returns the first byte and the length of the shown part of each line.
    fn window(&self) -> (u64, usize) {
        match self.column {
            Some(column) => (column, MOST_LONE_BYTES),
            None => (0, MOST_LINE_BYTES),
        }
    }
}

/// Checks the hash of a stored output.
pub(super) fn blob_hash(hash: &str) -> Result<String, BadArguments> {
    if hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(BadArguments(format!(
            "`{BLOB}` must be followed by the 64 hexadecimal digits that the cut output names"
        )));
    }
    Ok(hash.to_ascii_lowercase())
}

fn blob(hash: &str, page: LineRange, shown: String) -> Result<Prepared, BadArguments> {
    let hash = blob_hash(hash)?;
    let subject = format!("{BLOB}{hash}");
    let name = subject.clone();
    Ok(Prepared {
        class: EffectClass::Read,
        touches: Touches::default(),
        shown,
        pattern: subject.clone(),
        subject,
        preview: None,
        deadline: DEADLINE,
        needs: vec![Need::Blob(hash)],
        unconfined: None,
        run: Run::Blocking(Box::new(move |context| {
            let Some(bytes) = &context.inputs.blob else {
                return Output::failed(format!("there is no stored output `{name}`"));
            };
            let mut reader = BufReader::new(Cursor::new(bytes));
            // Cleaned like the cut output that names it, so that both read alike.
            let lines = PageLines::read(&mut reader, &page, clean).and_then(|mut lines| {
                lines.count_rest(&mut reader)?;
                Ok(lines)
            });
            match lines {
                Ok(lines) => lines.into_output(&name, &page),
                Err(error) => stopped_or_failed(&name, &context.stop, &error),
            }
        })),
    })
}

fn read_file(context: &CallContext, located: &Located, page: &LineRange) -> Output {
    let Located { path, real } = located;
    let name = paths::display_path(&context.place, path);
    if let Err(reason) = paths::check(&context.place, located) {
        return Output::failed(reason);
    }
    let (file, metadata) = match files::open(real) {
        Ok(opened) => opened,
        Err(FileError::Missing) => return files::missing(&name, real),
        Err(error) => return Output::failed(format!("`{name}` {error}")),
    };
    let bytes = metadata.len();
    let watched = HashedFile {
        file,
        hasher: (bytes <= MOST_HASHED_BYTES).then(Sha256::new),
        room: MOST_HASHED_BYTES,
        stop: context.stop.clone(),
    };
    let mut reader = BufReader::with_capacity(64 * 1024, watched);
    match read_text(&mut reader, &name, bytes, page) {
        Ok(mut output) => {
            let hash = reader.into_inner().hasher;
            let hash = hash.map(|hasher| files::hex(&hasher.finalize()));
            output.files = hash
                .map(|hash| files::read(path, hash))
                .into_iter()
                .collect();
            output
        }
        Err(error) => stopped_or_failed(&name, &context.stop, &error),
    }
}

fn read_text(
    reader: &mut BufReader<HashedFile>,
    name: &str,
    bytes: u64,
    page: &LineRange,
) -> io::Result<Output> {
    let start = reader.fill_buf()?;
    let start = &start[..start.len().min(LOOKED_AT_BYTES)];
    if images::is_image(start) {
        return read_image(reader, name, bytes);
    }
    if let Some(kind) = kind_of(start) {
        let size = files::size(bytes);
        reader.get_mut().hasher = None;
        return Ok(Output::failed(format!(
            "`{name}` is not text: {kind}, {size}. With bash, `file`, `xxd -s OFFSET -l LENGTH` or \
             `strings` show more of it"
        )));
    }
    let mut lines = PageLines::read(reader, page, visible)?;
    if reader.get_ref().hasher.is_some() {
        lines.count_rest(reader)?;
    }
    lines.bytes = Some(bytes);
    Ok(lines.into_output(name, page))
}

fn read_image(reader: &mut BufReader<HashedFile>, name: &str, bytes: u64) -> io::Result<Output> {
    if bytes > images::MOST_FILE_BYTES {
        let (size, most) = (files::size(bytes), files::size(images::MOST_FILE_BYTES));
        return Ok(Output::failed(format!(
            "`{name}` is an image of {size}; at most {most} can be read. With bash, make a \
             smaller copy"
        )));
    }
    let mut encoded = Vec::new();
    reader
        .take(images::MOST_FILE_BYTES)
        .read_to_end(&mut encoded)?;
    Ok(match images::prepare(encoded) {
        Ok(image) => {
            let text = format!("[image {name}: {}]\n", image.description);
            let mut output = Output::done(text, image.description.clone());
            output.images.push(image);
            output
        }
        Err(reason) => Output::failed(format!("`{name}` {reason}")),
    })
}

fn stopped_or_failed(name: &str, stop: &CancellationToken, error: &io::Error) -> Output {
    if stop.is_cancelled() {
        return Output::stopped();
    }
    Output::failed(format!("`{name}` cannot be read: {error}"))
}

/// Cancellable reader that hashes the file up to a limit.
struct HashedFile {
    file: File,
    hasher: Option<Sha256>,
    /// Bytes left to hash; the file may grow while it is read.
    room: u64,
    stop: CancellationToken,
}

impl Read for HashedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        let count = self.file.read(buffer)?;
        match self.room.checked_sub(count as u64) {
            Some(room) => self.room = room,
            None => self.hasher = None,
        }
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&buffer[..count]);
        }
        Ok(count)
    }
}

/// Names the type of a binary file by its first bytes; none for text.
fn kind_of(start: &[u8]) -> Option<&'static str> {
    const KINDS: [(&[u8], &str); 11] = [
        (b"\x7fELF", "a program or library (ELF)"),
        (b"%PDF-", "a PDF document"),
        (b"PK\x03\x04", "a ZIP archive or a document made of one"),
        (b"\x1f\x8b", "compressed (gzip)"),
        (b"\xfd7zXZ\0", "compressed (xz)"),
        (b"\x28\xb5\x2f\xfd", "compressed (zstd)"),
        (b"BZh", "compressed (bzip2)"),
        (b"SQLite format 3\0", "an SQLite database"),
        (
            b"\xff\xfe",
            "text in UTF-16, which `iconv -f UTF-16` converts",
        ),
        (
            b"\xfe\xff",
            "text in UTF-16, which `iconv -f UTF-16` converts",
        ),
        (b"\0asm", "a WebAssembly module"),
    ];
    // A PDF's start may have no zero byte; text almost never has one.
    if !start.contains(&0) && !start.starts_with(b"%PDF-") {
        return None;
    }
    let known = KINDS.iter().find(|(magic, _)| start.starts_with(magic));
    Some(known.map_or("binary data", |(_, kind)| kind))
}

/// Page of lines that is being built.
#[derive(Default)]
struct PageLines {
    text: String,
    /// Lines read so far, shown or skipped.
    passed: u64,
    /// Lines on the page.
    shown: u64,
    /// True if the end of the file was reached.
    ended: bool,
    /// True if a shown line ends with `\r\n`.
    crlf: bool,
    /// True if a character is shown as a symbol.
    symbols: bool,
    /// Size of the file; none for a stored output.
    bytes: Option<u64>,
}

impl PageLines {
    fn read(
        reader: &mut impl BufRead,
        page: &LineRange,
        make_text: fn(&[u8]) -> String,
    ) -> io::Result<Self> {
        let mut lines = Self::default();
        while lines.passed + 1 < page.first {
            if reader.skip_until(b'\n')? == 0 {
                lines.ended = true;
                return Ok(lines);
            }
            lines.passed += 1;
        }
        while lines.shown < page.count && lines.text.len() < FULL_PAGE_BYTES {
            let Some(line) = PageLine::read(reader, page.window())? else {
                lines.ended = true;
                break;
            };
            lines.push(&line, make_text);
        }
        Ok(lines)
    }

    fn push(&mut self, line: &PageLine, make_text: fn(&[u8]) -> String) {
        self.passed += 1;
        self.shown += 1;
        self.crlf |= line.crlf;
        let text = make_text(&line.bytes);
        self.symbols |= text.as_bytes() != line.bytes;
        let number = self.passed;
        let _ = write!(self.text, "{number:>6}\t{text}");
        let end = line.start + line.bytes.len() as u64;
        if end < line.length {
            let next = end + 1;
            let length = line.length;
            let _ = write!(
                self.text,
                " [… line {number} has {length} bytes; offset={number} column={next} shows more]"
            );
        }
        self.text.push('\n');
    }

    fn count_rest(&mut self, reader: &mut impl BufRead) -> io::Result<()> {
        while reader.skip_until(b'\n')? > 0 {
            self.passed += 1;
        }
        self.ended = true;
        Ok(())
    }

    fn into_output(self, name: &str, page: &LineRange) -> Output {
        let total = self.passed;
        if self.shown == 0 {
            return match total {
                0 if page.first == 1 => Output::done("[it is empty]\n", format!("{name}: empty")),
                total => Output::failed(format!(
                    "`{name}` has only {total} lines: there is no line {}",
                    page.first
                )),
            };
        }
        let last = page.first + self.shown - 1;
        let of = match self.bytes {
            Some(bytes) if !self.ended => format!("of a file of {}", files::size(bytes)),
            _ => format!("of {total}"),
        };
        let mut remarks = Vec::new();
        if !self.ended || last < total {
            let next = last + 1;
            remarks.push(format!(
                "lines {}-{last} {of}; go on with offset={next}",
                page.first
            ));
        }
        if self.crlf {
            remarks.push("lines end with CRLF".to_owned());
        }
        // Stored outputs are cleaned, so they have no symbols.
        if self.symbols && self.bytes.is_some() {
            let remark =
                "control characters are shown as symbols such as ␛, what is not UTF-8 as �";
            remarks.push(remark.to_owned());
        }
        let mut body = self.text;
        if !remarks.is_empty() {
            let _ = writeln!(body, "[{}]", remarks.join("; "));
        }
        let shown = match self.shown {
            1 => format!("{name}: line {last} {of}"),
            _ => format!("{name}: lines {}-{last} {of}", page.first),
        };
        Output::done(body, shown)
    }
}

/// One line, of which only the shown part is in memory.
#[derive(Default)]
struct PageLine {
    /// Shown part.
    bytes: Vec<u8>,
    /// Offset of the shown part in the line.
    start: u64,
    /// Length of the whole line in bytes, without its ending.
    length: u64,
    /// True if the line ends with `\r\n`.
    crlf: bool,
}

impl PageLine {
    /// Reads the next line; none at the end.
    fn read(reader: &mut impl BufRead, window: (u64, usize)) -> io::Result<Option<Self>> {
        let (start, most) = window;
        let mut line = Self {
            start,
            ..Self::default()
        };
        let mut begun = false;
        let mut last = None;
        loop {
            let chunk = reader.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            begun = true;
            let newline = chunk.iter().position(|byte| *byte == b'\n');
            let content = &chunk[..newline.unwrap_or(chunk.len())];
            line.take(content, most);
            last = content.last().copied().or(last);
            let consumed = content.len() + usize::from(newline.is_some());
            reader.consume(consumed);
            if newline.is_some() {
                line.crlf = last == Some(b'\r');
                break;
            }
        }
        line.trim();
        Ok(begun.then_some(line))
    }

    /// Adds the next bytes of the line, as far as they are in the window.
    fn take(&mut self, content: &[u8], most: usize) {
        let before = usize::try_from(self.start.saturating_sub(self.length)).unwrap_or(usize::MAX);
        let wanted = content.get(before..).unwrap_or_default();
        let room = most - self.bytes.len();
        self.bytes
            .extend_from_slice(&wanted[..wanted.len().min(room)]);
        self.length += content.len() as u64;
    }

    /// Removes the `\r` of the ending and an incomplete character at a cut.
    fn trim(&mut self) {
        if self.crlf {
            if self.start + self.bytes.len() as u64 == self.length {
                self.bytes.pop();
            }
            self.length -= 1;
        }
        if self.start + (self.bytes.len() as u64) < self.length
            && let Err(error) = std::str::from_utf8(&self.bytes)
            && error.error_len().is_none()
            && error.valid_up_to() > 0
        {
            self.bytes.truncate(error.valid_up_to());
        }
    }
}
