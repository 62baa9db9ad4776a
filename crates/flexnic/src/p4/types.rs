//! Types as the checker knows them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use num_bigint::BigInt;

use super::ast::StructKind;
use super::source::Name;

/// A type. Equality of struct-like types, enums and new types goes by declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Of an expression that has an error; agrees with everything.
    Unknown,
    /// No value.
    Void,
    /// `bool`
    Bool,
    /// `error`
    Error,
    /// `match_kind`
    MatchKind,
    /// `string`
    Text,
    /// `int`: any integer, at compile time only.
    Integer,
    /// `bit<W>`
    Bit(u32),
    /// `int<W>`
    Int(u32),
    /// `varbit<W>`
    Varbit(u32),
    /// A type parameter of a declaration.
    Parameter(u32, Name),
    /// A type that a call still has to find out.
    Infer(u32),
    /// Struct, header or union.
    Struct(Arc<StructType>),
    /// Header stack.
    Stack(Arc<Type>, u32),
    /// `tuple<...>` and lists of values.
    Tuple(Arc<[Type]>),
    /// `list<T>`
    List(Arc<Type>),
    /// Enumeration.
    Enum(Arc<EnumType>),
    /// `type T N`
    New(Arc<NewType>),
    /// A set of values of a type.
    Set(Arc<Type>),
    /// Extern, parser, control or package.
    Object(Arc<ObjectType>),
    /// A table, action or function: may be called, is no value.
    Callable(&'static str),
}

/// A struct, header or union with its type arguments filled in.
#[derive(Debug)]
pub struct StructType {
    /// Which declaration; 0 for a record without a declared type.
    pub id: u32,
    /// Name of the declaration.
    pub name: Name,
    /// Struct, header or union.
    pub kind: StructKind,
    /// Type arguments.
    pub arguments: Vec<Type>,
    /// Fields in order.
    pub fields: Vec<Field>,
    /// Scalars inside.
    pub leaves: u32,
}

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: Name,
    /// Type.
    pub ty: Type,
    /// Numbers of the field lists (`@field_list`) that it belongs to.
    pub lists: Vec<u8>,
}

impl PartialEq for StructType {
    fn eq(&self, other: &StructType) -> bool {
        self.id == other.id && self.arguments == other.arguments && (self.id != 0 || self.fields == other.fields)
    }
}
impl Eq for StructType {}

/// An enumeration.
#[derive(Debug)]
pub struct EnumType {
    /// Which declaration.
    pub id: u32,
    /// Name of the declaration.
    pub name: Name,
    /// Type of the values; none for an enumeration without values.
    pub underlying: Option<Type>,
    /// Names, and values where there is an underlying type.
    pub members: Vec<(Name, BigInt)>,
}

impl PartialEq for EnumType {
    fn eq(&self, other: &EnumType) -> bool {
        self.id == other.id
    }
}
impl Eq for EnumType {}

/// `type T N`
#[derive(Debug)]
pub struct NewType {
    /// Which declaration.
    pub id: u32,
    /// Name of the declaration.
    pub name: Name,
    /// The type that it is made of.
    pub of: Type,
    /// The type that controllers see instead.
    pub translation: Option<Translation>,
}

/// How controllers see values of a type (`@p4runtime_translation`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translation {
    /// Who says what the values mean.
    pub uri: Name,
    /// Bits; none for a string.
    pub bits: Option<u32>,
}

impl PartialEq for NewType {
    fn eq(&self, other: &NewType) -> bool {
        self.id == other.id
    }
}
impl Eq for NewType {}

/// The kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ObjectKind {
    Extern,
    Parser,
    Control,
    Package,
}

/// An extern, parser, control or package with its type arguments.
#[derive(Debug, PartialEq, Eq)]
pub struct ObjectType {
    /// Extern, parser, control or package.
    pub kind: ObjectKind,
    /// Index among the declarations of its kind; parsers and controls are one kind.
    pub declaration: usize,
    /// Name of the declaration.
    pub name: Name,
    /// Type arguments.
    pub arguments: Vec<Type>,
}

/// The types that type parameters and inferred types stand for.
pub type Substitution = HashMap<u32, Type>;

/// Scalars of some fields.
pub fn leaves(fields: &[Field]) -> u32 {
    fields.iter().map(|field| field.ty.leaves()).fold(0, u32::saturating_add)
}

/// A type with more scalars is refused: types double with each level of nesting.
pub const LEAVES_MAX: u32 = 1 << 16;

impl Type {
    /// Scalars inside.
    pub fn leaves(&self) -> u32 {
        match self {
            Type::Struct(of) => of.leaves,
            Type::Stack(of, count) => of.leaves().saturating_mul(*count),
            Type::Tuple(items) => items.iter().map(Type::leaves).fold(0, u32::saturating_add),
            _ => 1,
        }
    }

    /// A tuple of types.
    pub fn tuple(items: Vec<Type>) -> Type {
        Type::Tuple(Arc::from(items))
    }

    /// Replaces type parameters (and inferred types) by what they stand for.
    pub fn substitute(&self, with: &Substitution) -> Type {
        if with.is_empty() {
            return self.clone();
        }
        match self {
            Type::Parameter(id, _) | Type::Infer(id) => match with.get(id) {
                Some(found) if found != self => found.substitute(with),
                _ => self.clone(),
            },
            Type::Struct(of) if of.arguments.is_empty() && of.id != 0 => self.clone(),
            Type::Struct(of) => {
                let fields = of.fields.iter().map(|field| Field { ty: field.ty.substitute(with), ..field.clone() });
                let fields: Vec<Field> = fields.collect();
                Type::Struct(Arc::new(StructType {
                    arguments: of.arguments.iter().map(|ty| ty.substitute(with)).collect(),
                    leaves: leaves(&fields),
                    fields,
                    name: of.name.clone(),
                    ..**of
                }))
            }
            Type::Stack(of, size) => Type::Stack(Arc::new(of.substitute(with)), *size),
            Type::Tuple(items) => Type::Tuple(items.iter().map(|ty| ty.substitute(with)).collect()),
            Type::List(of) => Type::List(Arc::new(of.substitute(with))),
            Type::Set(of) => Type::Set(Arc::new(of.substitute(with))),
            Type::Object(of) => Type::Object(Arc::new(ObjectType {
                arguments: of.arguments.iter().map(|ty| ty.substitute(with)).collect(),
                name: of.name.clone(),
                ..**of
            })),
            _ => self.clone(),
        }
    }

    /// The fields of a struct-like type.
    pub fn fields(&self) -> &[Field] {
        match self {
            Type::Struct(of) => &of.fields,
            _ => &[],
        }
    }

    /// Struct, header or union.
    pub fn struct_kind(&self) -> Option<StructKind> {
        match self {
            Type::Struct(of) => Some(of.kind),
            _ => None,
        }
    }

    /// A header.
    pub fn is_header(&self) -> bool {
        self.struct_kind() == Some(StructKind::Header)
    }

    /// The type that a new type or an enumeration with values is made of; itself otherwise.
    pub fn representation(&self) -> Type {
        match self {
            Type::New(new) => new.of.representation(),
            Type::Enum(of) => of.underlying.as_ref().map_or_else(|| self.clone(), Type::representation),
            _ => self.clone(),
        }
    }

    /// Bits of a type of fixed size; a varbit counts with `varbit_bits`.
    pub fn bits(&self, varbit_bits: impl Fn(u32) -> u32 + Copy) -> Option<u32> {
        match self.representation() {
            Type::Bool => Some(1),
            Type::Bit(width) | Type::Int(width) => Some(width),
            Type::Varbit(width) => Some(varbit_bits(width)),
            Type::Struct(of) if of.kind == StructKind::Union => {
                let sizes: Option<Vec<u32>> = of.fields.iter().map(|field| field.ty.bits(varbit_bits)).collect();
                sizes.map(|sizes| sizes.into_iter().max().unwrap_or(0))
            }
            Type::Struct(of) => of.fields.iter().map(|field| field.ty.bits(varbit_bits)).sum(),
            Type::Tuple(items) => items.iter().map(|ty| ty.bits(varbit_bits)).sum(),
            Type::Stack(of, size) => Some(of.bits(varbit_bits)?.saturating_mul(size)),
            _ => None,
        }
    }

    /// The type holds no parameter and nothing to infer.
    pub fn is_concrete(&self) -> bool {
        match self {
            Type::Parameter(..) | Type::Infer(_) => false,
            Type::Struct(of) => of.fields.iter().all(|field| field.ty.is_concrete()),
            Type::Stack(of, _) | Type::List(of) | Type::Set(of) => of.is_concrete(),
            Type::Tuple(items) => items.iter().all(Type::is_concrete),
            Type::Object(of) => of.arguments.iter().all(Type::is_concrete),
            _ => true,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: &[Type]| items.iter().map(Type::to_string).collect::<Vec<_>>().join(", ");
        let generic = |name: &str, items: &[Type]| {
            if items.is_empty() { name.to_owned() } else { format!("{name}<{}>", list(items)) }
        };
        match self {
            Type::Unknown => out.write_str("?"),
            Type::Void => out.write_str("void"),
            Type::Bool => out.write_str("bool"),
            Type::Error => out.write_str("error"),
            Type::MatchKind => out.write_str("match_kind"),
            Type::Text => out.write_str("string"),
            Type::Integer => out.write_str("int"),
            Type::Bit(width) => write!(out, "bit<{width}>"),
            Type::Int(width) => write!(out, "int<{width}>"),
            Type::Varbit(width) => write!(out, "varbit<{width}>"),
            Type::Parameter(_, name) => out.write_str(name),
            Type::Infer(_) => out.write_str("_"),
            Type::Struct(of) if of.id == 0 => {
                let fields = of.fields.iter().map(|field| format!("{}: {}", field.name, field.ty));
                write!(out, "{{{}}}", fields.collect::<Vec<_>>().join(", "))
            }
            Type::Struct(of) => out.write_str(&generic(&of.name, &of.arguments)),
            Type::Stack(of, size) => write!(out, "{of}[{size}]"),
            Type::Tuple(items) => write!(out, "tuple<{}>", list(items)),
            Type::List(of) => write!(out, "list<{of}>"),
            Type::Set(of) => write!(out, "set of {of}"),
            Type::Enum(of) => out.write_str(&of.name),
            Type::New(of) => out.write_str(&of.name),
            Type::Object(of) => out.write_str(&generic(&of.name, &of.arguments)),
            Type::Callable(what) => out.write_str(what),
        }
    }
}
