//! API keys: hidden input at the terminal, and refusal as messages.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read as _, Write as _};

use anyhow::{Context, Result, bail};
use ikigai_engine::{Engine, TypedKey, UserInput, looks_like_key};
use ikigai_tui::terminal::HiddenInput;
use rustix::termios::{LocalModes, SpecialCodeIndex};

/// Longest line that can be a key.
const LONGEST_LINE: u64 = 8 * 1024;

/// Byte that Ctrl-C sends.
const CTRL_C: u8 = 3;

/// Refuses to send a text that is only a key: it would stay in the log for ever.
pub(crate) fn hold_key_back(text: &str) -> Result<()> {
    // A leading space overrides this.
    if looks_like_key(text) && !text.trim_end().contains(char::is_whitespace) {
        bail!(
            "this looks like an API key, so it was not sent\nhint: save it with `ikigai run \"/key PROVIDER\"`; \
             to send it as text, put a space before it"
        );
    }
    Ok(())
}

/// Asks for the key if the line is `/key PROVIDER` and there is a terminal.
///
/// Otherwise the command itself reports the missing key.
pub(super) fn ask_key(engine: &Engine, input: &UserInput) -> Result<()> {
    let UserInput::Command(typed) = input else {
        return Ok(());
    };
    let provider = &*typed.arguments;
    if typed.command.name != "key" || provider.is_empty() || provider.contains(char::is_whitespace)
    {
        return Ok(());
    }
    let Ok(terminal) = OpenOptions::new().read(true).write(true).open("/dev/tty") else {
        return Ok(());
    };
    let typed = read_hidden(&terminal, &format!("{provider} API key (hidden): "))
        .context("cannot read the key from the terminal")?;
    let Some(key) = TypedKey::new(&typed) else {
        bail!("not a valid API key; nothing was saved");
    };
    engine.set_typed_key(provider, key);
    Ok(())
}

fn read_hidden(mut terminal: &File, prompt: &str) -> Result<String> {
    let hidden = HiddenInput::begin(terminal, |modes| {
        modes.local_modes.remove(LocalModes::ISIG);
        modes.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
    })?;
    terminal.write_all(prompt.as_bytes())?;
    let mut bytes = Vec::new();
    let mut reader = BufReader::new(terminal).take(LONGEST_LINE);
    loop {
        // Ctrl-C ends a line like Enter, so that the terminal is always restored.
        let read = reader.fill_buf()?.to_vec();
        reader.consume(read.len());
        bytes.extend_from_slice(&read);
        if read.is_empty() || read.ends_with(b"\n") {
            break;
        }
        if read.ends_with(&[CTRL_C]) {
            drop(hidden);
            terminal.write_all(b"\n")?;
            bail!("no key entered");
        }
    }
    drop(hidden);
    terminal.write_all(b"\n")?;
    String::from_utf8(bytes).context("the key is not UTF-8")
}
