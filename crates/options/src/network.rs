//! Addresses and paths as values of keys.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::str::FromStr;

use crate::{Form, OptionType, Value};

/// An IPv4 address.
pub static IPV4: Form = Form { says: "an IPv4 address, such as \"10.0.0.1\"", parse: written::<Ipv4Addr> };

/// An IPv6 address.
pub static IPV6: Form = Form { says: "an IPv6 address, such as \"fd00::1\"", parse: written::<Ipv6Addr> };

/// An address of either kind.
pub static IP: Form = Form { says: "an address, such as \"10.0.0.1\"", parse: written::<IpAddr> };

/// A path, of something that need not exist.
pub static PATH: Form = Form { says: "a path, in quotes", parse: |text| (!text.is_empty()).then(|| text.to_owned()) };

/// A name that something else gives a meaning.
pub static NAME: Form = Form { says: "a name, in quotes", parse: |text| (!text.is_empty()).then(|| text.to_owned()) };

/// `text` as `T` writes it.
fn written<T: FromStr + ToString>(text: &str) -> Option<String> {
    text.parse::<T>().ok().map(|value| value.to_string())
}

macro_rules! textual {
    ($($type:ty),*) => {$(
        impl OptionType for $type {
            fn to_value(&self) -> Option<Value> {
                Some(Value::Text(self.to_string()))
            }
            fn from_value(value: &Value) -> Option<$type> {
                match value {
                    Value::Text(text) => text.parse().ok(),
                    _ => None,
                }
            }
        }
    )*};
}

textual!(Ipv4Addr, Ipv6Addr, IpAddr);

impl OptionType for PathBuf {
    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.to_str()?.to_owned()))
    }
    fn from_value(value: &Value) -> Option<PathBuf> {
        match value {
            Value::Text(text) => Some(PathBuf::from(text)),
            _ => None,
        }
    }
}

/// Several values of one key, as [`Allowed::List`](crate::Allowed::List) keeps them: with commas between them.
impl<T: FromStr + ToString> OptionType for Vec<T> {
    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.iter().map(T::to_string).collect::<Vec<_>>().join(", ")))
    }
    fn from_value(value: &Value) -> Option<Vec<T>> {
        let Value::Text(text) = value else { return None };
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(|item| item.parse().ok()).collect()
    }
}
