//! Options of one module: a struct whose fields are keys.

use crate::{Key, Value, Values};

/// The options of a module: typed fields, each a key of scenario files. [`options!`](crate::options) declares them.
pub trait Options: Clone + Default + 'static {
    /// All keys, in the order in which they are listed.
    fn keys() -> Vec<&'static Key>;

    /// The value of key `name`; `None` when it is unset, or no key of this struct.
    fn get(&self, name: &str) -> Option<Value>;

    /// Stores a value; `false` when it has another type or does not fit, or there is no such key.
    fn set(&mut self, name: &str, value: &Value) -> bool;

    /// The defaults, except what `values` say.
    fn of(values: &Values) -> Self {
        let mut options = Self::default();
        for key in Self::keys() {
            if let Some(value) = values.get(key.name) {
                let stored = options.set(key.name, value);
                debug_assert!(stored, "{} = {value} was checked against its declaration", key.name);
            }
        }
        options
    }
}

/// No options at all.
impl Options for () {
    fn keys() -> Vec<&'static Key> {
        Vec::new()
    }
    fn get(&self, _name: &str) -> Option<Value> {
        None
    }
    fn set(&mut self, _name: &str, _value: &Value) -> bool {
        false
    }
}

/// Declares the options of a module. A field is a key of its name; its doc comment is the key's help.
///
/// ```
/// use nicforge_options::{Allowed, Options, options};
///
/// options! {
///     /// A ring per core.
///     pub struct Rings {
///         /// Entries of each ring.
///         ring_entries: usize = 1024, "entries", Allowed::PowerOfTwo(2, 65536), source "paper, section 6";
///         /// Time between looks; none are taken when unset.
///         look_ms: Option<f64> = None, "ms", Allowed::Number(0.01, 60.0), default "no looks";
///     }
/// }
///
/// assert_eq!(Rings::keys()[0].name, "ring_entries");
/// assert_eq!(Rings::default().ring_entries, 1024);
/// ```
///
/// `embed NAME: TYPE;` lines in front take in the keys of another options struct, which several modules share.
#[macro_export]
macro_rules! options {
    (
        $(#[$about:meta])*
        $vis:vis struct $struct:ident {
            $(embed $embedded:ident: $inner:ty;)*
            $(
                $(#[doc = $doc:literal])+
                $name:ident: $type:ty = $default:expr, $unit:literal, $allowed:expr
                $(, default $says:literal)? $(, source $source:literal)?;
            )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $struct {
            $(
                #[doc = concat!("The keys of `", stringify!($inner), "`.")]
                pub $embedded: $inner,
            )*
            $($(#[doc = $doc])+ pub $name: $type,)*
        }

        impl Default for $struct {
            fn default() -> $struct {
                $struct {
                    $($embedded: Default::default(),)*
                    $($name: $default,)*
                }
            }
        }

        impl $crate::Options for $struct {
            fn keys() -> Vec<&'static $crate::Key> {
                static KEYS: &[$crate::Key] = &[
                    $($crate::Key {
                        name: stringify!($name),
                        unit: $unit,
                        doc: concat!($($doc),+).trim_ascii(),
                        allowed: $allowed,
                        default: || <$type as $crate::OptionType>::to_value(&$default),
                        default_says: concat!($($says)?),
                        source: concat!($($source)?),
                    },)*
                ];
                let mut keys: Vec<&'static $crate::Key> = Vec::new();
                $(keys.extend(<$inner as $crate::Options>::keys());)*
                keys.extend(KEYS);
                keys
            }

            fn get(&self, name: &str) -> Option<$crate::Value> {
                match name {
                    $(stringify!($name) => $crate::OptionType::to_value(&self.$name),)*
                    _ => None$(.or_else(|| $crate::Options::get(&self.$embedded, name)))*,
                }
            }

            fn set(&mut self, name: &str, value: &$crate::Value) -> bool {
                match name {
                    $(stringify!($name) => {
                        $crate::OptionType::from_value(value).map(|value| self.$name = value).is_some()
                    })*
                    _ => false $(|| $crate::Options::set(&mut self.$embedded, name, value))*,
                }
            }
        }
    };
}

/// Declares a type that takes one of a few words; the first one is the default.
///
/// ```
/// nicforge_options::choice! {
///     /// How frames arrive.
///     pub enum Arrival {
///         /// One after the other.
///         Constant = "constant",
///         /// At random.
///         Poisson = "poisson",
///     }
/// }
///
/// assert_eq!(Arrival::WORDS, ["constant", "poisson"]);
/// assert_eq!(Arrival::default().word(), "constant");
/// ```
#[macro_export]
macro_rules! choice {
    (
        $(#[$about:meta])*
        $vis:vis enum $enum:ident {
            $(#[doc = $first_doc:literal])+
            $first:ident = $first_word:literal
            $(, $(#[doc = $doc:literal])+ $variant:ident = $word:literal)* $(,)?
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis enum $enum {
            $(#[doc = $first_doc])+
            #[default]
            $first,
            $($(#[doc = $doc])+ $variant,)*
        }

        impl $enum {
            /// The words, in the order of the variants.
            pub const WORDS: &'static [&'static str] = &[$first_word $(, $word)*];

            /// What a key takes that has this type.
            pub const ALLOWED: $crate::Allowed = $crate::Allowed::Choice($enum::WORDS);

            /// The word for it.
            pub fn word(self) -> &'static str {
                match self {
                    $enum::$first => $first_word,
                    $($enum::$variant => $word,)*
                }
            }
        }

        impl $crate::OptionType for $enum {
            fn to_value(&self) -> Option<$crate::Value> {
                Some($crate::Value::Text(self.word().to_owned()))
            }

            fn from_value(value: &$crate::Value) -> Option<$enum> {
                let $crate::Value::Text(text) = value else {
                    return None;
                };
                match text.as_str() {
                    $first_word => Some($enum::$first),
                    $($word => Some($enum::$variant),)*
                    _ => None,
                }
            }
        }

        impl From<$enum> for $crate::Value {
            fn from(choice: $enum) -> $crate::Value {
                $crate::Value::Text(choice.word().to_owned())
            }
        }
    };
}
