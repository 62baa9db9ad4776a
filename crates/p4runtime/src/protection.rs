//! Protection between applications, after FlexNIC (ASPLOS 2016): early rules of the operating system tag packets, and an
//! application's rules match the tag.
//!
//! A program marks the key that matches the tag with `@tag`. Clients of role `application:N` may write entries of such
//! tables with the tag `N`, and nothing else; clients of other roles are the operating system.

use nicforge_flexnic::p4::hir::Annotations;
use nicforge_flexnic::p4::ir::Match;
use tonic::Code;

use crate::control::Control;
use crate::proto::p4::v1 as p4;
use crate::refusal::Refusal;
use crate::wire::{keys, parse_matches};
use p4::entity::Entity;

/// The tag of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(u64);

fn denied(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::PermissionDenied, message)
}

impl Tag {
    /// The tag that a role names; none for the operating system's roles.
    pub fn of_role(role: &str) -> Result<Option<Tag>, Refusal> {
        let Some(number) = role.strip_prefix("application:") else { return Ok(None) };
        let wrong = || Refusal::invalid(format!("role `{role}` names no tag: write application:7, for instance"));
        number.parse().map(|number| Some(Tag(number))).map_err(|_| wrong())
    }

    /// Refuses what this application may not write.
    pub fn check(self, control: &Control<'_>, entity: &Entity) -> Result<(), Refusal> {
        let Entity::TableEntry(entry) = entity else {
            return Err(denied("an application writes entries of tables only"));
        };
        let (_, table) = control.table(entry.table_id)?;
        let Some(at) = keys(table).position(|(_, key)| marks_tag(&key.annotations)) else {
            return Err(denied(format!(
                "table `{}` has no @tag key: its entries are the operating system's",
                table.path
            )));
        };
        if entry.is_default_action {
            return Err(denied(format!("the default action of table `{}` is the operating system's", table.path)));
        }
        match &parse_matches(table, &entry.r#match)?[at] {
            Match::Exact(value) if value[0] == self.0 && value[1..].iter().all(|word| *word == 0) => Ok(()),
            _ => Err(denied(format!("entries of this application match tag {} in table `{}`", self.0, table.path))),
        }
    }
}

fn marks_tag(annotations: &Annotations) -> bool {
    annotations.iter().any(|annotation| &*annotation.name == "tag")
}
