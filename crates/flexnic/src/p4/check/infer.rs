//! Unification: what type arguments have to be for arguments to fit.

use super::Checker;
use crate::p4::types::{ObjectKind, ObjectType, Substitution, Type};

impl Checker<'_> {
    /// The type with everything inferred so far.
    pub(super) fn resolve(&self, ty: &Type) -> Type {
        ty.substitute(&self.inferred)
    }

    /// Makes `wanted` and `given` agree as far as an implicit conversion of `given` allows.
    pub(super) fn unify(&mut self, wanted: &Type, given: &Type) -> bool {
        if let Type::Infer(id) = wanted {
            return self.unify_inferred(*id, given);
        }
        let (wanted, given) = (self.resolve(wanted), self.resolve(given));
        match (&wanted, &given) {
            (Type::Unknown, _) | (_, Type::Unknown) => true,
            (_, Type::Infer(id)) => {
                if wanted != given {
                    self.inferred.insert(*id, wanted.clone());
                }
                true
            }
            (Type::Infer(id), _) => self.unify_inferred(*id, &given),
            (Type::Bit(_) | Type::Int(_), Type::Integer) => true,
            (Type::Struct(a), Type::Struct(b))
                if a.id == b.id && a.arguments.len() == b.arguments.len() && a.id != 0 =>
            {
                let pairs: Vec<_> = a.arguments.iter().cloned().zip(b.arguments.iter().cloned()).collect();
                pairs.iter().all(|(a, b)| self.unify(a, b))
            }
            (Type::Struct(a), Type::Struct(b)) if b.id == 0 => {
                let mut fields = a.fields.iter();
                fields.all(|field| {
                    let other = b.fields.iter().find(|other| other.name == field.name);
                    other.is_some_and(|other| self.unify(&field.ty, &other.ty))
                })
            }
            (Type::Struct(a), Type::Tuple(b)) if a.fields.len() == b.len() => {
                a.fields.iter().zip(b.iter()).all(|(field, item)| self.unify(&field.ty, item))
            }
            (Type::Tuple(a), Type::Tuple(b)) if a.len() == b.len() => {
                a.iter().zip(b.iter()).all(|(a, b)| self.unify(a, b))
            }
            (Type::List(a), Type::Tuple(b)) => b.iter().all(|b| self.unify(a, b)),
            (Type::Stack(a, _), Type::Tuple(b)) => b.iter().all(|b| self.unify(a, b)),
            (Type::Stack(a, n), Type::Stack(b, m)) => n == m && self.unify(a, b),
            (Type::List(a), Type::List(b)) | (Type::Set(a), Type::Set(b)) => self.unify(a, b),
            (Type::Set(a), _) => self.unify(a, &given),
            (Type::Object(a), Type::Object(b)) => self.unify_objects(a, b),
            (Type::Enum(of), Type::Bit(_) | Type::Int(_) | Type::Integer) => of.underlying.is_none() && wanted == given,
            (_, Type::Enum(of)) if of.underlying.as_ref() == Some(&wanted) => true,
            _ => wanted == given,
        }
    }

    fn unify_inferred(&mut self, id: u32, given: &Type) -> bool {
        let given = self.resolve(given);
        match self.inferred.get(&id).cloned() {
            // A literal does not fix a width; what comes later may.
            None | Some(Type::Integer) => {
                if given != Type::Infer(id) {
                    self.inferred.insert(id, given);
                }
                true
            }
            Some(known) => self.unify(&known, &given),
        }
    }

    fn unify_objects(&mut self, wanted: &ObjectType, given: &ObjectType) -> bool {
        if wanted.kind != given.kind {
            return false;
        }
        if wanted.declaration == given.declaration {
            return wanted.arguments.iter().zip(&given.arguments).all(|(a, b)| self.unify(a, b));
        }
        if !matches!(wanted.kind, ObjectKind::Parser | ObjectKind::Control) {
            return false;
        }
        let signature = |checker: &Self, of: &ObjectType| {
            let block = &checker.program.blocks[of.declaration];
            let with: Substitution = block.type_parameters.iter().copied().zip(of.arguments.iter().cloned()).collect();
            let parameters = block.parameters.iter();
            parameters.map(|p| (p.direction, p.ty.substitute(&with), p.optional)).collect::<Vec<_>>()
        };
        let (wanted, given) = (signature(self, wanted), signature(self, given));
        let optional = wanted.iter().skip(given.len()).all(|(_, _, optional)| *optional);
        given.len() <= wanted.len()
            && optional
            && wanted.iter().zip(&given).all(|(a, b)| a.0 == b.0 && self.unify(&a.1, &b.1))
    }
}
