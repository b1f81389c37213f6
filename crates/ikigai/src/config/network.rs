//! `[sandbox] network`: whether sandboxed processes reach the network, or a list of hosts.

use std::fmt;

use ikigai_tools::AllowedHost;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Value;

/// `[sandbox] network`: true, false, or a list of hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum NetworkSetting {
    #[default]
    Nothing,
    Hosts(Vec<AllowedHost>),
    All,
}

impl NetworkSetting {
    /// Returns the hosts that both allow.
    pub(crate) fn narrowed_by(self, theirs: Self) -> Self {
        match (self, theirs) {
            (Self::Nothing, _) | (_, Self::Nothing) => Self::Nothing,
            (ours, Self::All) => ours,
            (Self::All, theirs) => theirs,
            (Self::Hosts(ours), Self::Hosts(theirs)) => {
                let is_ours = |host: &AllowedHost| ours.iter().any(|own| own.covers(host));
                let both: Vec<_> = theirs
                    .iter()
                    .filter(|host| is_ours(host))
                    .cloned()
                    .collect();
                let wider = ours
                    .iter()
                    .filter(|own| theirs.iter().any(|host| host.covers(own)))
                    .filter(|own| !both.contains(own));
                Self::Hosts(wider.cloned().chain(both.iter().cloned()).collect())
            }
        }
    }
}

impl<'de> Deserialize<'de> for NetworkSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NetworkVisitor)
    }
}

struct NetworkVisitor;

impl<'de> Visitor<'de> for NetworkVisitor {
    type Value = NetworkSetting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`true`, `false`, or a list of hosts")
    }

    fn visit_bool<E>(self, is_allowed: bool) -> Result<NetworkSetting, E> {
        Ok(if is_allowed {
            NetworkSetting::All
        } else {
            NetworkSetting::Nothing
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<NetworkSetting, A::Error> {
        let hosts = Vec::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(NetworkSetting::Hosts(hosts))
    }
}

impl From<NetworkSetting> for Value {
    fn from(setting: NetworkSetting) -> Self {
        match setting {
            NetworkSetting::Nothing => Self::Boolean(false),
            NetworkSetting::All => Self::Boolean(true),
            NetworkSetting::Hosts(hosts) => {
                let hosts = hosts.iter().map(|host| Self::String(host.to_string()));
                Self::Array(hosts.collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(text: &str) -> NetworkSetting {
        let value: Value = toml::from_str::<toml::Table>(&format!("network = {text}"))
            .unwrap()
            .remove("network")
            .unwrap();
        value.try_into().unwrap()
    }

    /// A project's setting can only take hosts away.
    #[test]
    fn a_project_only_narrows_the_network() {
        let cases = [
            ("false", "true", "false"),
            ("false", "[\"a.com\"]", "false"),
            ("true", "true", "true"),
            ("true", "false", "false"),
            ("true", "[\"a.com\"]", "[\"a.com\"]"),
            ("[\"a.com\"]", "true", "[\"a.com\"]"),
            ("[\"a.com\"]", "false", "false"),
            ("[\"a.com\"]", "[]", "[]"),
            (
                "[\"a.com\", \"b.com\"]",
                "[\"b.com\", \"c.com\"]",
                "[\"b.com\"]",
            ),
            ("[\"*.a.com\"]", "[\"b.a.com\", \"a.com\"]", "[\"b.a.com\"]"),
            ("[\"b.a.com\", \"c.com\"]", "[\"*.a.com\"]", "[\"b.a.com\"]"),
            ("[\"a.com:22\"]", "[\"a.com\"]", "[]"),
        ];
        for (ours, theirs, expected) in cases {
            let both = setting(ours).narrowed_by(setting(theirs));
            assert_eq!(both, setting(expected), "{ours} and {theirs}");
        }
    }

    #[test]
    fn a_list_with_something_that_is_no_host_is_an_error() {
        let read = |text: &str| toml::from_str::<toml::Table>(text).unwrap();
        for text in [
            "network = [\"https://a.com\"]",
            "network = [\"*\"]",
            "network = 1",
        ] {
            let value = read(text).remove("network").unwrap();
            let error = value.try_into::<NetworkSetting>().unwrap_err().to_string();
            assert!(error.contains("host"), "{text}: {error}");
        }
    }
}
