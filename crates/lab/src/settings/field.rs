//! How the types that settings have turn into [`Value`] and back.

use super::Value;

/// A type that a setting may have.
pub(super) trait SettingType {
    fn to_value(&self) -> Option<Value>;
    fn store(&mut self, value: &Value) -> bool;
}

macro_rules! whole {
    ($($type:ty),*) => {$(
        impl SettingType for $type {
            fn to_value(&self) -> Option<Value> {
                u64::try_from(*self).ok().map(Value::Integer)
            }
            fn store(&mut self, value: &Value) -> bool {
                let Value::Integer(value) = value else { return false };
                <$type>::try_from(*value).map(|value| *self = value).is_ok()
            }
        }
    )*};
}

whole!(usize, u32, u64);

impl SettingType for f64 {
    fn to_value(&self) -> Option<Value> {
        Some(Value::Number(*self))
    }
    fn store(&mut self, value: &Value) -> bool {
        let Value::Number(value) = value else {
            return false;
        };
        *self = *value;
        true
    }
}

impl SettingType for bool {
    fn to_value(&self) -> Option<Value> {
        Some(Value::Flag(*self))
    }
    fn store(&mut self, value: &Value) -> bool {
        let Value::Flag(value) = value else {
            return false;
        };
        *self = *value;
        true
    }
}

impl SettingType for String {
    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.clone()))
    }
    fn store(&mut self, value: &Value) -> bool {
        let Value::Text(value) = value else {
            return false;
        };
        value.clone_into(self);
        true
    }
}

impl<T: SettingType + Default> SettingType for Option<T> {
    fn to_value(&self) -> Option<Value> {
        self.as_ref().and_then(T::to_value)
    }
    fn store(&mut self, value: &Value) -> bool {
        let mut inner = T::default();
        let stored = inner.store(value);
        if stored {
            *self = Some(inner);
        }
        stored
    }
}
