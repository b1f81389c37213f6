//! Lenient reading and exact writing of rows' JSON data.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Fields of data, by name.
pub(crate) type Object = Map<String, Value>;

/// Takes a field out of data; a field of another type counts as absent.
pub(crate) fn take<T: DeserializeOwned>(object: &mut Object, field: &str) -> Option<T> {
    T::deserialize(object.remove(field)?).ok()
}

/// Reads a field; a value of another type counts as absent.
pub(crate) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let value = Value::deserialize(deserializer)?;
    Ok(T::deserialize(value).ok())
}

/// Reads data of any kind; unreadable data counts as absent.
pub fn read<T: DeserializeOwned + Default>(data: Option<&str>) -> T {
    data.and_then(|text| serde_json::from_str::<Object>(text).ok())
        .and_then(|object| T::deserialize(Value::Object(object)).ok())
        .unwrap_or_default()
}

/// Writes data as the text that is stored.
pub(crate) fn write<T: Serialize>(data: &T) -> String {
    // Types of this module have string keys and no fallible serializer, so nothing fails here; an
    // empty object would be read as "nothing known".
    serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned())
}

/// Defines a struct of optional fields, each read leniently and left out when absent.
///
/// Only an object is accepted: a derived reader would also accept a list of the fields' values.
macro_rules! data_type {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct $name {
            $(
                $(#[$field_doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )*
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let mut object = $crate::json::Object::deserialize(deserializer)?;
                Ok(Self {
                    $($field: $crate::json::take(
                        &mut object,
                        stringify!($field).trim_start_matches("r#"),
                    ),)*
                })
            }
        }
    };
}
pub(crate) use data_type;

/// Defines an enum of single lower-case words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$word_doc])* $word,)* }
    };
}
pub(crate) use words;
