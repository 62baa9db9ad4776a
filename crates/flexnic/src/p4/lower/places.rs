//! Storage: how types lie in the frame.

use super::Lower;
use crate::p4::ast::StructKind;
use crate::p4::hir::VarId;
use crate::p4::ir::{Index, Op, Operand, Slot, words};
use crate::p4::types::Type;

/// Storage of a value of some type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    /// Type without parameters.
    pub ty: Type,
    /// First word, or that of element 0.
    pub word: u32,
    /// Which element of a header stack; stacks do not nest, so one index is enough.
    pub index: Option<Index>,
}

/// Bits of a scalar; none for aggregates. A varbit counts with its size word.
pub(super) fn scalar_width(ty: &Type) -> Option<u32> {
    match ty.representation() {
        Type::Bool => Some(1),
        Type::Error => Some(16),
        Type::Enum(_) => Some(32),
        Type::Bit(width) | Type::Int(width) => Some(width),
        Type::Varbit(width) => Some(64 * (1 + words(width) as u32)),
        Type::Integer => Some(64),
        _ => None,
    }
}

pub(super) fn is_signed(ty: &Type) -> bool {
    matches!(ty.representation(), Type::Int(_))
}

/// Words of a value.
pub(super) fn size(ty: &Type) -> u32 {
    if let Some(width) = scalar_width(ty) {
        return words(width) as u32;
    }
    match ty {
        Type::Struct(of) => {
            let fields: u32 = of.fields.iter().map(|field| size(&field.ty)).fold(0, u32::saturating_add);
            fields + u32::from(of.kind == StructKind::Header)
        }
        Type::Stack(of, count) => size(of).saturating_mul(*count).saturating_add(1),
        Type::Tuple(items) => items.iter().map(size).fold(0, u32::saturating_add),
        _ => 0,
    }
}

impl Place {
    /// The whole as one value of words.
    pub(super) fn raw(&self) -> Slot {
        Slot { word: self.word, width: 64 * size(&self.ty).max(1), temporary: false }
    }

    pub(crate) fn slot(&self) -> Slot {
        let width = scalar_width(&self.ty).unwrap_or(64 * size(&self.ty));
        Slot { word: self.word, width, temporary: false }
    }

    fn at(&self, offset: u32, ty: Type) -> Place {
        Place { ty, word: self.word.saturating_add(offset), index: self.index.clone() }
    }

    /// The word that says whether a header is valid.
    pub(super) fn valid(&self) -> Place {
        self.at(0, Type::Bool)
    }

    /// The index of a stack's next element.
    pub(super) fn next(&self) -> Place {
        self.at(0, Type::Bit(32))
    }

    /// A field of a struct, header, union or tuple.
    pub(crate) fn field(&self, number: usize) -> Place {
        let types: Vec<Type> = match &self.ty {
            Type::Tuple(items) => items.to_vec(),
            ty => ty.fields().iter().map(|field| field.ty.clone()).collect(),
        };
        let before: u32 = types.iter().take(number).map(size).fold(0, u32::saturating_add);
        let offset = before + u32::from(self.ty.is_header());
        self.at(offset, types.get(number).cloned().unwrap_or(Type::Unknown))
    }

    pub(super) fn field_count(&self) -> usize {
        match &self.ty {
            Type::Tuple(items) => items.len(),
            ty => ty.fields().len(),
        }
    }

    /// A constant element of a stack.
    pub(super) fn element(&self, number: u32) -> Place {
        let Type::Stack(of, _) = &self.ty else {
            return self.clone();
        };
        self.at(1 + number.saturating_mul(size(of)), (**of).clone())
    }

    pub(super) fn count(&self) -> u32 {
        match &self.ty {
            Type::Stack(_, count) => *count,
            _ => 0,
        }
    }

    /// An element of a stack that is chosen at run time.
    pub(super) fn element_at(&self, value: Operand) -> Place {
        if let Operand::Constant(constant) = &value
            && constant.limbs[0] < u64::from(self.count())
        {
            return self.element(constant.limbs[0] as u32);
        }
        let first = self.element(0);
        let stride = size(&first.ty);
        Place { index: Some(Index { value, stride, count: self.count() }), ..first }
    }
}

impl Lower<'_> {
    pub(super) fn allocate(&mut self, ty: &Type) -> Place {
        let ty = ty.substitute(&self.types);
        let place = Place { word: self.next_word, index: None, ty };
        self.next_word = self.next_word.saturating_add(size(&place.ty)).min(super::WORDS_MAX + 1);
        place
    }

    /// Storage of a variable. Nothing recurses, so each variable needs one place for each of its types.
    pub(super) fn storage(&mut self, variable: VarId, ty: &Type) -> Place {
        let ty = ty.substitute(&self.types);
        let known = self.storage.get(&variable).and_then(|all| all.iter().find(|(known, _)| *known == ty));
        if let Some((_, place)) = known {
            return place.clone();
        }
        let place = self.allocate(&ty);
        self.storage.entry(variable).or_default().push((ty, place.clone()));
        place
    }

    /// Reads a scalar.
    pub(super) fn read(&mut self, place: &Place) -> Operand {
        self.read_slot(place, place.slot())
    }

    fn read_slot(&mut self, place: &Place, slot: Slot) -> Operand {
        let Some(index) = &place.index else {
            return Operand::Slot(slot);
        };
        let to = self.temporary(slot.width);
        self.op(Op::Load { to, from: slot, index: index.clone() });
        Operand::Slot(to)
    }

    /// Writes a scalar.
    pub(super) fn write(&mut self, place: &Place, from: Operand) {
        self.write_slot(place, place.slot(), from);
    }

    fn write_slot(&mut self, place: &Place, slot: Slot, from: Operand) {
        match &place.index {
            None => self.op(Op::Copy { to: slot, from }),
            Some(index) => self.op(Op::Store { to: slot, index: index.clone(), from }),
        }
    }

    /// Copies a whole value.
    pub(super) fn copy(&mut self, to: &Place, from: &Place) {
        if to == from || size(&to.ty) == 0 {
            return;
        }
        let value = self.read_slot(from, from.raw());
        self.write_slot(to, to.raw(), value);
    }

    /// Sets a value to zero; headers become invalid.
    pub(super) fn clear(&mut self, place: &Place) {
        let words = size(&place.ty);
        if words == 0 {
            return;
        }
        if place.index.is_none() {
            self.op(Op::Clear { word: place.word, words });
            return;
        }
        let limbs = vec![0; words as usize];
        let zero = Operand::Constant(crate::p4::ir::Constant { width: 64 * words, limbs: limbs.into() });
        self.write_slot(place, place.raw(), zero);
    }

    /// A copy that later writes do not change.
    pub(super) fn snapshot(&mut self, place: &Place) -> Place {
        let copy = self.allocate(&place.ty);
        self.copy(&copy, place);
        copy
    }
}
