//! The password file of `libpq`: `host:port:database:user:password`.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{BadUrl, Host, SOCKET_DIRECTORIES, ServerAddress, Url};

/// Limit of the file in bytes.
const PASSFILE_BYTES: u64 = 1024 * 1024;

/// Finds the password for all servers of a URL; `None` if one of them has none or another one.
pub(crate) fn password_of_all(path: &Path, url: &Url) -> Result<Option<String>, BadUrl> {
    let found = password(path, url)?;
    for ServerAddress { host, port } in url.others.clone() {
        let one = Url {
            host,
            port,
            ..url.clone()
        };
        if password(path, &one)? != found {
            return Ok(None);
        }
    }
    Ok(found)
}

/// Finds the password for the first server of a URL; `None` if the file is missing or has none.
pub(crate) fn password(path: &Path, url: &Url) -> Result<Option<String>, BadUrl> {
    let fail = |error: io::Error| BadUrl::Passwords {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let metadata = match path.metadata() {
        Ok(metadata) if metadata.is_file() => metadata,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(fail)?;
    file.take(PASSFILE_BYTES)
        .read_to_end(&mut bytes)
        .map_err(fail)?;
    let text = String::from_utf8_lossy(&bytes);
    let found = text.lines().find_map(|line| password_in(line, url));
    if found.is_some() && metadata.mode() & 0o077 != 0 {
        return Err(BadUrl::Exposed(path.to_owned()));
    }
    Ok(found)
}

fn password_in(line: &str, url: &Url) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = fields(line).into_iter();
    let mut is_for = |wanted: &str| {
        let field = fields.next();
        field.is_some_and(|field| field == "*" || field == wanted)
    };
    let host = match &url.host {
        Host::Name(host) => host.as_str(),
        Host::Socket(directory) => match directory.to_str() {
            // The file lists default sockets as `localhost`.
            Some(usual) if SOCKET_DIRECTORIES.contains(&usual) => "localhost",
            Some(directory) => directory,
            None => return None,
        },
    };
    let is_ours =
        is_for(host) && is_for(&url.port.to_string()) && is_for(&url.database) && is_for(&url.user);
    is_ours
        .then(|| fields.next())
        .flatten()
        .filter(|password| !password.is_empty())
}

/// Splits at colons; a backslash escapes the next character. The last field, the password, may
/// contain colons.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let kept = match character {
            '\\' => characters.next(),
            ':' if fields.len() < 5 => {
                fields.push(String::new());
                None
            }
            other => Some(other),
        };
        if let Some(field) = fields.last_mut() {
            field.extend(kept);
        }
    }
    fields
}
