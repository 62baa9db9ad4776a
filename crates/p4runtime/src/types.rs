//! P4 types as P4Info writes them down, and values of them.

use nicforge_flexnic::p4::ast::StructKind;
use nicforge_flexnic::p4::types::{EnumType, StructType, Type};

use crate::proto::p4::config::v1 as config;
use crate::proto::p4::v1 as p4;
use crate::values::{from_bytes, to_bytes};

use config::p4_bitstring_like_type_spec::TypeSpec as Bits;
use config::p4_data_type_spec::TypeSpec;

/// The name of a type that controllers know by name: a new type.
pub fn type_name(ty: &Type) -> Option<config::P4NamedType> {
    match ty {
        Type::New(of) => Some(named(&of.name)),
        _ => None,
    }
}

fn named(name: &str) -> config::P4NamedType {
    config::P4NamedType { name: name.to_owned() }
}

/// Bits that controllers see; 0 for a string.
pub fn sdn_width(ty: &Type, width: u32) -> u32 {
    match ty {
        Type::New(of) => match &of.translation {
            Some(to) => to.bits.unwrap_or(0),
            None => sdn_width(&of.of, width),
        },
        _ => width,
    }
}

/// Controllers see strings in place of the values.
pub fn is_string(ty: &Type) -> bool {
    matches!(ty, Type::New(of) if of.translation.as_ref().is_some_and(|to| to.bits.is_none()) || is_string(&of.of))
}

fn bits(ty: &Type) -> Option<config::P4BitstringLikeTypeSpec> {
    let spec = match ty {
        Type::Bit(width) => Bits::Bit(config::P4BitTypeSpec { bitwidth: *width as i32 }),
        Type::Int(width) => Bits::Int(config::P4IntTypeSpec { bitwidth: *width as i32 }),
        Type::Varbit(width) => Bits::Varbit(config::P4VarbitTypeSpec { max_bitwidth: *width as i32 }),
        _ => return None,
    };
    Some(config::P4BitstringLikeTypeSpec { type_spec: Some(spec), ..Default::default() })
}

/// What P4Info says about a type.
pub fn spec(ty: &Type) -> Option<config::P4DataTypeSpec> {
    let spec = match ty {
        Type::Bit(_) | Type::Int(_) | Type::Varbit(_) => TypeSpec::Bitstring(bits(ty)?),
        Type::Bool => TypeSpec::Bool(config::P4BoolType {}),
        Type::Error => TypeSpec::Error(config::P4ErrorType {}),
        Type::Tuple(items) => {
            TypeSpec::Tuple(config::P4TupleTypeSpec { members: items.iter().filter_map(spec).collect() })
        }
        Type::Struct(of) if of.id == 0 => {
            let members = of.fields.iter().filter_map(|field| spec(&field.ty)).collect();
            TypeSpec::Tuple(config::P4TupleTypeSpec { members })
        }
        Type::Struct(of) => match of.kind {
            StructKind::Struct => TypeSpec::Struct(named(&of.name)),
            StructKind::Header => TypeSpec::Header(named(&of.name)),
            StructKind::Union => TypeSpec::HeaderUnion(named(&of.name)),
        },
        Type::Stack(of, size) => {
            let (name, size) = (Some(named(&of.to_string())), *size as i32);
            if of.is_header() {
                TypeSpec::HeaderStack(config::P4HeaderStackTypeSpec { header: name, size })
            } else {
                TypeSpec::HeaderUnionStack(config::P4HeaderUnionStackTypeSpec { header_union: name, size })
            }
        }
        Type::Enum(of) if of.underlying.is_some() => TypeSpec::SerializableEnum(named(&of.name)),
        Type::Enum(of) => TypeSpec::Enum(named(&of.name)),
        Type::New(of) => TypeSpec::NewType(named(&of.name)),
        _ => return None,
    };
    Some(config::P4DataTypeSpec { type_spec: Some(spec) })
}

/// Adds a type and those inside it to what P4Info knows by name.
pub fn describe(ty: &Type, into: &mut config::P4TypeInfo) {
    match ty {
        Type::Tuple(items) => items.iter().for_each(|item| describe(item, into)),
        Type::Stack(of, _) => describe(of, into),
        Type::Struct(of) if of.id == 0 => of.fields.iter().for_each(|field| describe(&field.ty, into)),
        Type::Struct(of) => describe_struct(of, into),
        Type::Enum(of) => describe_enum(of, into),
        Type::New(of) => {
            use config::p4_new_type_spec::Representation;
            use config::p4_new_type_translation::{SdnString, SdnType};
            let representation = match &of.translation {
                Some(to) => Some(Representation::TranslatedType(config::P4NewTypeTranslation {
                    uri: to.uri.to_string(),
                    sdn_type: Some(match to.bits {
                        Some(bits) => SdnType::SdnBitwidth(bits as i32),
                        None => SdnType::SdnString(SdnString {}),
                    }),
                })),
                None => spec(&of.of).map(Representation::OriginalType),
            };
            if of.translation.is_none() {
                describe(&of.of, into);
            }
            let spec = config::P4NewTypeSpec { representation, ..Default::default() };
            into.new_types.insert(of.name.to_string(), spec);
        }
        Type::Error => {}
        _ => {}
    }
}

fn describe_struct(of: &StructType, into: &mut config::P4TypeInfo) {
    of.fields.iter().for_each(|field| describe(&field.ty, into));
    let name = of.name.to_string();
    match of.kind {
        StructKind::Struct => {
            let members = of.fields.iter().map(|field| config::p4_struct_type_spec::Member {
                name: field.name.to_string(),
                type_spec: spec(&field.ty),
            });
            let spec = config::P4StructTypeSpec { members: members.collect(), ..Default::default() };
            into.structs.insert(name, spec);
        }
        StructKind::Header => {
            let members = of.fields.iter().map(|field| config::p4_header_type_spec::Member {
                name: field.name.to_string(),
                type_spec: bits(&field.ty.representation()),
            });
            let spec = config::P4HeaderTypeSpec { members: members.collect(), ..Default::default() };
            into.headers.insert(name, spec);
        }
        StructKind::Union => {
            let members = of.fields.iter().map(|field| config::p4_header_union_type_spec::Member {
                name: field.name.to_string(),
                header: Some(named(&field.ty.to_string())),
            });
            let spec = config::P4HeaderUnionTypeSpec { members: members.collect(), ..Default::default() };
            into.header_unions.insert(name, spec);
        }
    }
}

fn describe_enum(of: &EnumType, into: &mut config::P4TypeInfo) {
    let name = of.name.to_string();
    let Some(underlying) = &of.underlying else {
        let members = of
            .members
            .iter()
            .map(|(name, _)| config::p4_enum_type_spec::Member { name: name.to_string(), ..Default::default() });
        let spec = config::P4EnumTypeSpec { members: members.collect(), ..Default::default() };
        into.enums.insert(name, spec);
        return;
    };
    let width = underlying.bits(|most| most).unwrap_or(0);
    let members = of.members.iter().map(|(name, value)| {
        let bytes = value.to_bytes_be().1;
        config::p4_serializable_enum_type_spec::Member { name: name.to_string(), value: bytes, ..Default::default() }
    });
    let spec = config::P4SerializableEnumTypeSpec {
        underlying_type: Some(config::P4BitTypeSpec { bitwidth: width as i32 }),
        members: members.collect(),
        ..Default::default()
    };
    into.serializable_enums.insert(name, spec);
}

/// A value of a type from its scalars in order: width, words.
pub fn to_data(ty: &Type, scalars: &mut impl Iterator<Item = Vec<u64>>) -> p4::P4Data {
    use p4::p4_data::Data;
    let mut next = || scalars.next().unwrap_or_else(|| vec![0]);
    let data = match ty.representation() {
        Type::Bool => Data::Bool(next()[0] != 0),
        Type::Tuple(items) => {
            let members = items.iter().map(|item| to_data(item, scalars)).collect();
            Data::Tuple(p4::P4StructLike { members })
        }
        Type::Struct(of) if of.kind == StructKind::Header => {
            let is_valid = next()[0] != 0;
            let bitstrings = of.fields.iter().map(|_| to_bytes(&scalars.next().unwrap_or_else(|| vec![0]))).collect();
            Data::Header(p4::P4Header { is_valid, bitstrings })
        }
        Type::Struct(of) => {
            let members = of.fields.iter().map(|field| to_data(&field.ty, scalars)).collect();
            Data::Struct(p4::P4StructLike { members })
        }
        Type::Enum(of) => {
            let number = next()[0] as usize;
            Data::Enum(of.members.get(number).map_or_else(String::new, |(name, _)| name.to_string()))
        }
        _ if matches!(ty, Type::Enum(_)) => Data::EnumValue(to_bytes(&next())),
        _ => Data::Bitstring(to_bytes(&next())),
    };
    p4::P4Data { data: Some(data) }
}

/// The scalars of a value, or what is wrong with it.
pub fn from_data(ty: &Type, data: &p4::P4Data, into: &mut Vec<Vec<u64>>) -> Result<(), String> {
    use p4::p4_data::Data;
    let wrong = || format!("the value is not of type `{ty}`");
    let data = data.data.as_ref().ok_or_else(wrong)?;
    match (ty.representation(), data) {
        (Type::Bool, Data::Bool(value)) => into.push(vec![u64::from(*value)]),
        (Type::Bit(width) | Type::Int(width), Data::Bitstring(bytes) | Data::EnumValue(bytes)) => {
            into.push(from_bytes(bytes, width).map_err(|error| error.to_string())?);
        }
        (Type::Tuple(items), Data::Tuple(values)) if items.len() == values.members.len() => {
            for (item, value) in items.iter().zip(&values.members) {
                from_data(item, value, into)?;
            }
        }
        (Type::Struct(of), Data::Struct(values)) if of.fields.len() == values.members.len() => {
            for (field, value) in of.fields.iter().zip(&values.members) {
                from_data(&field.ty, value, into)?;
            }
        }
        _ => return Err(wrong()),
    }
    Ok(())
}
