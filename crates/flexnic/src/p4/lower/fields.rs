//! Fields by name, and layouts of headers.

use std::sync::Arc;

use super::Lower;
use super::places::{Place, scalar_width, size};
use crate::p4::ast::StructKind;
use crate::p4::ir::{FieldLayout, HeaderLayout, HeaderPlace, NamedField};
use crate::p4::source::Name;
use crate::p4::types::Type;

/// Elements of a stack that get names.
const NAMED_ELEMENTS_MAX: u32 = 64;

impl Lower<'_> {
    /// Names the scalars of a place for traces, metadata preserved by field lists, and table keys.
    pub fn name_fields(&mut self, prefix: &str, place: &Place) {
        self.name_inside(prefix, place, None, &[]);
    }

    fn name_inside(&mut self, prefix: &str, place: &Place, valid: Option<u32>, lists: &[u8]) {
        if scalar_width(&place.ty).is_some() {
            let varbit = matches!(place.ty.representation(), Type::Varbit(_));
            let (name, slot, lists) = (prefix.to_owned(), place.slot(), lists.to_vec());
            self.ir.fields.push(NamedField { name, slot, valid, lists, varbit });
            return;
        }
        match place.ty.clone() {
            Type::Struct(of) => {
                let valid = if of.kind == StructKind::Header { Some(place.word) } else { valid };
                for (number, field) in of.fields.iter().enumerate() {
                    let mut inside = lists.to_vec();
                    inside.extend(&field.lists);
                    self.name_inside(&format!("{prefix}.{}", field.name), &place.field(number), valid, &inside);
                }
            }
            Type::Stack(_, count) => {
                for number in 0..count.min(NAMED_ELEMENTS_MAX) {
                    self.name_inside(&format!("{prefix}[{number}]"), &place.element(number), valid, lists);
                }
            }
            Type::Tuple(items) => {
                for number in 0..items.len() {
                    self.name_inside(&format!("{prefix}[{number}]"), &place.field(number), valid, lists);
                }
            }
            _ => {}
        }
    }
}

/// A header with its layout.
pub(super) fn header_place(place: &Place) -> HeaderPlace {
    HeaderPlace { layout: Arc::new(header_layout(&place.ty)), word: place.word, index: place.index.clone() }
}

fn header_layout(ty: &Type) -> HeaderLayout {
    let name = match ty {
        Type::Struct(of) => of.name.clone(),
        _ => Name::from(""),
    };
    let mut fields = Vec::new();
    add_fields(ty, "", 1, &mut fields);
    let fixed_bits = fields.iter().filter(|field| !field.varbit).map(|field| field.width).sum();
    HeaderLayout { name, fields, fixed_bits }
}

/// Adds the scalars of a header, or of a struct inside of one, and returns the words they take.
fn add_fields(ty: &Type, prefix: &str, start: u32, fields: &mut Vec<FieldLayout>) -> u32 {
    let mut offset = start;
    for field in ty.fields() {
        let name = format!("{prefix}{}", field.name);
        match field.ty.representation() {
            Type::Varbit(width) => fields.push(FieldLayout { name: name.into(), offset, width, varbit: true }),
            Type::Struct(_) => {
                add_fields(&field.ty, &format!("{name}."), offset, fields);
            }
            _ => {
                let width = scalar_width(&field.ty).unwrap_or(0);
                fields.push(FieldLayout { name: name.into(), offset, width, varbit: false });
            }
        }
        offset += size(&field.ty);
    }
    offset
}
