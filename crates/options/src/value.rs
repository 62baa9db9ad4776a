//! Values of keys, and how the types of fields turn into them and back.

use serde::Serialize;

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A whole number, never negative.
    Integer(u64),
    /// A finite number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A name or a path.
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Integer(value) => write!(f, "{value}"),
            Value::Number(value) => write!(f, "{value}"),
            Value::Flag(value) => write!(f, "{value}"),
            Value::Text(text) => write!(f, "\"{text}\""),
        }
    }
}

/// A type that a field of an options struct may have.
pub trait OptionType: Sized {
    /// The field's value; `None` when it is unset.
    fn to_value(&self) -> Option<Value>;

    /// The field of a value; `None` when the value has another type or does not fit.
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! whole {
    ($($type:ty),*) => {$(
        impl OptionType for $type {
            fn to_value(&self) -> Option<Value> {
                u64::try_from(*self).ok().map(Value::Integer)
            }
            fn from_value(value: &Value) -> Option<$type> {
                match value {
                    Value::Integer(value) => <$type>::try_from(*value).ok(),
                    _ => None,
                }
            }
        }
        impl From<$type> for Value {
            fn from(value: $type) -> Value {
                Value::Integer(value as u64)
            }
        }
    )*};
}

whole!(usize, u32, u64);

impl OptionType for f64 {
    fn to_value(&self) -> Option<Value> {
        Some(Value::Number(*self))
    }
    fn from_value(value: &Value) -> Option<f64> {
        match value {
            Value::Number(value) => Some(*value),
            Value::Integer(value) => Some(*value as f64),
            _ => None,
        }
    }
}

impl OptionType for bool {
    fn to_value(&self) -> Option<Value> {
        Some(Value::Flag(*self))
    }
    fn from_value(value: &Value) -> Option<bool> {
        match value {
            Value::Flag(value) => Some(*value),
            _ => None,
        }
    }
}

impl OptionType for String {
    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.clone()))
    }
    fn from_value(value: &Value) -> Option<String> {
        match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl<T: OptionType> OptionType for Option<T> {
    fn to_value(&self) -> Option<Value> {
        self.as_ref().and_then(T::to_value)
    }
    fn from_value(value: &Value) -> Option<Option<T>> {
        T::from_value(value).map(Some)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Number(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Flag(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

/// A number below 0 is no whole number of any key.
impl From<i32> for Value {
    fn from(value: i32) -> Value {
        u64::try_from(value).map_or(Value::Number(value.into()), Value::Integer)
    }
}
