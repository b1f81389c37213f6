//! Settings of a server: the definitions that people write, checked and filled in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;

/// Usual time for the start of a server: it may download itself first.
const STARTUP: Duration = Duration::from_secs(30);

/// Usual time for a call.
const CALL: Duration = Duration::from_mins(2);

/// Longest time that can be set, in seconds.
const MOST_SECONDS: u64 = 3600;

/// Longest name of a server.
const MOST_NAME_BYTES: usize = 64;

/// Longest text with variables in place.
const MOST_EXPANDED_BYTES: usize = 64 * 1024;

/// Definition of a server, as `[mcp.NAME]` and `.mcp.json` have it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct McpDefinition {
    /// Program of a local server.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its variables, besides those that every tool gets.
    pub env: BTreeMap<String, String>,
    /// Its working directory; none for that of the agent.
    pub cwd: Option<String>,
    /// Address of a remote server.
    pub url: Option<String>,
    /// Kind of transport, as other programs write it.
    #[serde(rename = "type")]
    pub transport: Option<String>,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// Variable with the token of a remote server.
    pub bearer_token_env_var: Option<String>,
    /// Seconds for the start.
    #[serde(alias = "startup_timeout_sec")]
    pub startup_timeout: Option<u64>,
    /// Seconds for a call.
    #[serde(alias = "tool_timeout_sec")]
    pub tool_timeout: Option<u64>,
    /// False if it is switched off.
    pub enabled: Option<bool>,
    /// True if `disabled`, as other programs write it.
    pub disabled: Option<bool>,
    /// True if the first request waits for it.
    pub required: bool,
    /// The only tools to offer.
    pub enabled_tools: Option<Vec<String>>,
    /// Tools not to offer.
    pub disabled_tools: Vec<String>,
    /// False if it runs outside the sandbox.
    pub sandbox: Option<bool>,
    /// False if its sandbox has no network.
    pub network: Option<bool>,
    /// Paths that it may write besides the working directory.
    pub writable: Vec<String>,
    /// Keys without a meaning.
    #[serde(flatten)]
    pub unknown: BTreeMap<String, Value>,
}

/// Server that can be connected to.
#[derive(Clone, Debug)]
pub struct McpServerSettings {
    /// Name as defined.
    pub name: String,
    /// How to reach it.
    pub launch: McpLaunch,
    /// Time for the start.
    pub startup_timeout: Duration,
    /// Time for a call.
    pub tool_timeout: Duration,
    /// False if it is switched off.
    pub enabled: bool,
    /// True if the first request waits for it.
    pub required: bool,
    /// The only tools to offer.
    pub enabled_tools: Option<Vec<String>>,
    /// Tools not to offer.
    pub disabled_tools: Vec<String>,
}

/// Way to a server.
#[derive(Clone, Debug)]
pub enum McpLaunch {
    /// Child process that speaks on its standard streams.
    Process(McpProcess),
    /// Server behind an address.
    Http(McpAddress),
}

/// Local server.
#[derive(Clone, Debug)]
pub struct McpProcess {
    /// Program: a path, or a name to look up in `PATH`.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its own variables, which may be secrets.
    pub variables: Vec<(String, SecretString)>,
    /// Working directory; none for that of the agent.
    pub directory: Option<PathBuf>,
    /// True if it runs in the sandbox.
    pub sandbox: bool,
    /// True if its sandbox has network.
    pub network: bool,
    /// Paths that it may write besides the usual ones.
    pub writable: Vec<PathBuf>,
}

/// Remote server.
#[derive(Clone, Debug)]
pub struct McpAddress {
    /// Address of the endpoint.
    pub url: String,
    /// Headers of every request, which may be secrets.
    pub headers: Vec<(String, SecretString)>,
}

/// Looks up a variable of ikigai's environment: its value, none, or why it is withheld.
pub type VariableLookup<'a> = &'a dyn Fn(&str) -> Result<Option<String>, String>;

impl McpDefinition {
    /// Checks a definition and puts variables in place of `${NAME}` and `${NAME:-default}`.
    ///
    /// The error says what is wrong; it has no values of variables.
    pub fn resolve(
        &self,
        name: &str,
        variables: VariableLookup<'_>,
        home: Option<&std::path::Path>,
    ) -> Result<McpServerSettings, String> {
        if name.is_empty() || name.len() > MOST_NAME_BYTES || name.chars().any(char::is_control) {
            return Err(format!("a name has 1 to {MOST_NAME_BYTES} bytes of text"));
        }
        let expand = |text: &str| expand(text, variables);
        let launch = match (&self.command, &self.url) {
            (Some(command), None) => McpLaunch::Process(self.process(command, &expand, home)?),
            (None, Some(url)) => McpLaunch::Http(self.address(url, &expand, variables)?),
            (Some(_), Some(_)) => return Err("it has both `command` and `url`".to_owned()),
            (None, None) => return Err("it has neither `command` nor `url`".to_owned()),
        };
        Ok(McpServerSettings {
            name: name.to_owned(),
            launch,
            startup_timeout: seconds("startup_timeout", self.startup_timeout, STARTUP)?,
            tool_timeout: seconds("tool_timeout", self.tool_timeout, CALL)?,
            enabled: self.enabled.unwrap_or(true) && !self.disabled.unwrap_or(false),
            required: self.required,
            enabled_tools: self.enabled_tools.clone(),
            disabled_tools: self.disabled_tools.clone(),
        })
    }

    fn process(
        &self,
        command: &str,
        expand: &dyn Fn(&str) -> Result<String, String>,
        home: Option<&std::path::Path>,
    ) -> Result<McpProcess, String> {
        let program = expand(command)?;
        if program.trim().is_empty() {
            return Err("`command` is empty".to_owned());
        }
        let absolute = |text: &String| {
            let text = expand(text)?;
            let path = match text.strip_prefix("~/") {
                Some(rest) => home.map(|home| home.join(rest)).unwrap_or_default(),
                None => PathBuf::from(&text),
            };
            if path.is_absolute() {
                Ok(path)
            } else {
                Err(format!("`{text}` is not an absolute path"))
            }
        };
        let arguments = self.args.iter().map(|argument| expand(argument));
        let variables = self.env.iter();
        let variables =
            variables.map(|(name, value)| Ok((name.clone(), SecretString::from(expand(value)?))));
        Ok(McpProcess {
            program,
            arguments: arguments.collect::<Result<_, String>>()?,
            variables: variables.collect::<Result<_, String>>()?,
            directory: self.cwd.as_ref().map(absolute).transpose()?,
            sandbox: self.sandbox.unwrap_or(true),
            network: self.network.unwrap_or(true),
            writable: self
                .writable
                .iter()
                .map(absolute)
                .collect::<Result<_, _>>()?,
        })
    }

    fn address(
        &self,
        url: &str,
        expand: &dyn Fn(&str) -> Result<String, String>,
        variables: VariableLookup<'_>,
    ) -> Result<McpAddress, String> {
        if self.transport.as_deref() == Some("sse") {
            return Err(
                "the transport `sse` is not supported; most servers offer `http` too".to_owned(),
            );
        }
        let url = expand(url)?;
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err("`url` must begin with http:// or https://".to_owned());
        }
        let headers = self.headers.iter();
        let headers =
            headers.map(|(name, value)| Ok((name.clone(), SecretString::from(expand(value)?))));
        let mut headers: Vec<_> = headers.collect::<Result<_, String>>()?;
        if let Some(name) = &self.bearer_token_env_var {
            let token = variables(name)?.filter(|token| !token.trim().is_empty());
            let token = token.ok_or_else(|| format!("the variable `{name}` is not set"))?;
            let value = format!("Bearer {}", token.trim());
            headers.push(("Authorization".to_owned(), SecretString::from(value)));
        }
        Ok(McpAddress { url, headers })
    }
}

impl McpServerSettings {
    /// Returns true if a tool of this name is offered.
    pub(crate) fn offers(&self, tool: &str) -> bool {
        let is_in = |names: &[String]| names.iter().any(|name| name == tool);
        self.enabled_tools.as_deref().is_none_or(is_in) && !is_in(&self.disabled_tools)
    }

    /// Returns true if both lead to the same server in the same way.
    pub(crate) fn is_same_way(&self, other: &Self) -> bool {
        // Secrets cannot be compared; a changed one counts from the next start of ikigai.
        format!("{self:?}") == format!("{other:?}")
    }

    /// Returns values that must not reach a log.
    pub fn secrets(&self) -> Vec<SecretString> {
        let (values, is_header) = match &self.launch {
            McpLaunch::Process(process) => (&process.variables, false),
            McpLaunch::Http(address) => (&address.headers, true),
        };
        let secrets = values.iter().filter(|(name, value)| {
            is_header || crate::process::ChildEnvironment::is_likely_secret(name, value)
        });
        secrets.map(|(_, value)| value.clone()).collect()
    }

    /// Describes the way to the server, without secrets.
    pub fn describe(&self) -> String {
        match &self.launch {
            McpLaunch::Process(process) => std::iter::once(&process.program)
                .chain(&process.arguments)
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(" "),
            McpLaunch::Http(address) => host_of(&address.url),
        }
    }
}

/// Returns an address without user, password, query and fragment.
fn host_of(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}/{path}")
        }
        None => url.to_owned(),
    }
}

fn seconds(key: &str, value: Option<u64>, usual: Duration) -> Result<Duration, String> {
    match value {
        None => Ok(usual),
        Some(seconds) if (1..=MOST_SECONDS).contains(&seconds) => Ok(Duration::from_secs(seconds)),
        Some(_) => Err(format!("`{key}` must be 1 to {MOST_SECONDS} seconds")),
    }
}

/// Puts variables in place of `${NAME}` and `${NAME:-default}`.
fn expand(text: &str, variables: VariableLookup<'_>) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        expanded.push_str(before);
        let Some((inside, after)) = behind.split_once('}') else {
            expanded.push_str("${");
            rest = behind;
            continue;
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        match (variables(name)?, default) {
            (Some(value), _) if !value.is_empty() || default.is_none() => expanded.push_str(&value),
            (_, Some(default)) => expanded.push_str(default),
            (_, None) => return Err(format!("the variable `{name}` is not set")),
        }
        rest = after;
        if expanded.len() > MOST_EXPANDED_BYTES {
            return Err("a value is too long".to_owned());
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests;
