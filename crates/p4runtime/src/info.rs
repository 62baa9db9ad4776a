//! What a program offers to controllers: P4Info as p4c makes it.

use std::collections::BTreeMap;

use nicforge_flexnic::p4::Program;
use nicforge_flexnic::p4::ast::Annotation;
use nicforge_flexnic::p4::hir::{Annotations, MatchKind};
use nicforge_flexnic::p4::ir::{ActionInfo, KeyInfo, ObjectInfo, ObjectKind, TableInfo};
use nicforge_flexnic::p4::types::Type;

use crate::ids::{Ids, Kind, given_id};
use crate::proto::p4::config::v1 as config;
use crate::types::{self, sdn_width, type_name};
use crate::values::to_width;

/// Size of a table whose program gives none, as p4c has it for v1model.
const SIZE: i64 = 1024;

/// P4Info, and where each id leads in the program.
#[derive(Debug)]
pub struct Info {
    /// The message.
    pub message: config::P4Info,
    /// Tables by id.
    pub tables: BTreeMap<u32, usize>,
    /// Ids of tables by number.
    pub table_ids: Vec<u32>,
    /// Names of actions by id.
    pub actions: BTreeMap<u32, String>,
    /// Objects by id.
    pub objects: BTreeMap<u32, usize>,
    /// Value sets by id.
    pub sets: BTreeMap<u32, usize>,
    ids: Ids,
}

impl Info {
    /// Describes a program.
    pub fn new(program: &Program) -> Info {
        let ir = program.ir();
        let ids = Ids::new(&parts(program));
        let mut info = Info {
            message: config::P4Info::default(),
            tables: BTreeMap::new(),
            table_ids: Vec::new(),
            actions: BTreeMap::new(),
            objects: BTreeMap::new(),
            sets: BTreeMap::new(),
            ids,
        };
        let arch = if ir.is_pna { "pna" } else { "v1model" };
        info.message.pkg_info = Some(config::PkgInfo { arch: arch.to_owned(), ..Default::default() });
        info.message.type_info = Some(config::P4TypeInfo::default());
        for (number, table) in ir.tables.iter().enumerate() {
            info.table(program, number, table);
        }
        for (number, object) in ir.objects.iter().enumerate() {
            info.object(program, number, object);
        }
        for (number, set) in ir.sets.iter().enumerate() {
            info.value_set(number, set);
        }
        info.controller_headers(program);
        info.message.actions.sort_by_key(|action| action.preamble.as_ref().map_or(0, |preamble| preamble.id));
        info
    }

    /// The id of an action by its name.
    pub fn action_id(&self, path: &str) -> u32 {
        self.ids.id(Kind::Action, path)
    }

    /// The id of an object by its number; 0 for one that controllers do not see.
    pub fn object_id(&self, number: usize) -> u32 {
        self.objects.iter().find(|(_, object)| **object == number).map_or(0, |(id, _)| *id)
    }

    fn preamble(&self, kind: Kind, name: &str, annotations: &Annotations) -> Option<config::Preamble> {
        Some(config::Preamble {
            id: self.ids.id(kind, name),
            name: name.to_owned(),
            alias: self.ids.alias(name).to_owned(),
            annotations: shown(annotations),
            doc: documentation(annotations),
            ..Default::default()
        })
    }

    fn types(&mut self, ty: &Type) {
        if let Some(into) = &mut self.message.type_info {
            types::describe(ty, into);
        }
    }

    fn table(&mut self, program: &Program, number: usize, table: &TableInfo) {
        let ir = program.ir();
        let id = self.ids.id(Kind::Table, &table.path);
        self.table_ids.push(id);
        if is_hidden(&table.annotations) {
            return;
        }
        self.tables.insert(id, number);
        let keys = table.keys.iter().filter(|key| key.kind != MatchKind::Selector);
        let match_fields = keys.enumerate().map(|(at, key)| self.match_field(at, key)).collect();
        let action_refs = table.actions.iter().map(|action| self.action(action)).collect();
        let default = table.actions.get(table.default.action).map(|action| config::TableActionCall {
            action_id: self.action_id(&action.path),
            arguments: action
                .parameters
                .iter()
                .zip(&table.default.data)
                .enumerate()
                .map(|(at, (parameter, value))| config::table_action_call::Argument {
                    param_id: given_id(&parameter.annotations).unwrap_or(at as u32 + 1),
                    // p4c writes all bytes of these.
                    value: to_width(value, parameter.slot.width),
                })
                .collect(),
        });
        let direct = [(table.counter, Kind::DirectCounter), (table.meter, Kind::DirectMeter)];
        let direct = direct.into_iter().filter_map(|(object, kind)| Some((&ir.objects[object?].path, kind)));
        let implementation = table.profile.map(|object| &ir.objects[object].path);
        self.message.tables.push(config::Table {
            preamble: self.preamble(Kind::Table, &table.path, &table.annotations),
            match_fields,
            action_refs,
            const_default_action_id: match &default {
                Some(default) if table.default_is_const => default.action_id,
                _ => 0,
            },
            initial_default_action: default,
            implementation_id: implementation.map_or(0, |path| self.ids.id(Kind::ActionProfile, path)),
            direct_resource_ids: direct.map(|(path, kind)| self.ids.id(kind, path)).collect(),
            size: table.size.map_or(SIZE, |size| size as i64),
            is_const_table: table.entries_are_const,
            has_initial_entries: !table.entries.is_empty(),
            ..Default::default()
        });
    }

    fn match_field(&mut self, at: usize, key: &KeyInfo) -> config::MatchField {
        use config::match_field::{Match, MatchType};
        self.types(&key.ty);
        let kind = match key.kind {
            MatchKind::Exact | MatchKind::Selector => MatchType::Exact,
            MatchKind::Lpm => MatchType::Lpm,
            MatchKind::Ternary => MatchType::Ternary,
            MatchKind::Range => MatchType::Range,
            MatchKind::Optional => MatchType::Optional,
        };
        config::MatchField {
            id: given_id(&key.annotations).unwrap_or(at as u32 + 1),
            name: key.name.to_string(),
            annotations: shown(&key.annotations),
            doc: documentation(&key.annotations),
            bitwidth: sdn_width(&key.ty, key.width) as i32,
            r#match: Some(Match::MatchType(kind as i32)),
            type_name: type_name(&key.ty),
            ..Default::default()
        }
    }

    fn action(&mut self, action: &ActionInfo) -> config::ActionRef {
        use config::action_ref::Scope;
        let id = self.action_id(&action.path);
        if self.actions.insert(id, action.path.to_string()).is_none() {
            let params = action.parameters.iter().enumerate().map(|(at, parameter)| config::action::Param {
                id: given_id(&parameter.annotations).unwrap_or(at as u32 + 1),
                name: parameter.name.to_string(),
                annotations: shown(&parameter.annotations),
                doc: documentation(&parameter.annotations),
                bitwidth: sdn_width(&parameter.ty, parameter.slot.width) as i32,
                type_name: type_name(&parameter.ty),
                ..Default::default()
            });
            let params = params.collect();
            let preamble = self.preamble(Kind::Action, &action.path, &action.annotations);
            self.message.actions.push(config::Action { preamble, params });
            for parameter in &action.parameters {
                self.types(&parameter.ty);
            }
        }
        let scope = match (action.default_only, action.table_only) {
            (true, _) => Scope::DefaultOnly,
            (_, true) => Scope::TableOnly,
            _ => Scope::TableAndDefault,
        };
        config::ActionRef {
            id,
            scope: scope as i32,
            annotations: shown(&action.list_annotations),
            ..Default::default()
        }
    }

    fn object(&mut self, program: &Program, number: usize, object: &ObjectInfo) {
        let Some(kind) = kind_of(&object.kind) else { return };
        if is_hidden(&object.annotations) {
            return;
        }
        let ir = program.ir();
        let preamble = self.preamble(kind, &object.path, &object.annotations);
        let id = preamble.as_ref().map_or(0, |preamble| preamble.id);
        let direct_table_id = |of: fn(&TableInfo) -> Option<usize>| {
            let table = ir.tables.iter().find(|table| of(table) == Some(number));
            table.map(|table| self.ids.id(Kind::Table, &table.path))
        };
        match &object.kind {
            ObjectKind::Counter { size, bytes, packets } => {
                let spec = Some(counter_spec(*bytes, *packets));
                let size = *size as i64;
                self.message.counters.push(config::Counter { preamble, spec, size, index_type_name: None });
            }
            ObjectKind::DirectCounter { bytes, packets } => {
                let Some(direct_table_id) = direct_table_id(|table| table.counter) else { return };
                let spec = Some(counter_spec(*bytes, *packets));
                self.message.direct_counters.push(config::DirectCounter { preamble, spec, direct_table_id });
            }
            ObjectKind::Meter { size, bytes } => {
                let (spec, size) = (Some(meter_spec(*bytes)), *size as i64);
                self.message.meters.push(config::Meter { preamble, spec, size, index_type_name: None });
            }
            ObjectKind::DirectMeter { bytes } => {
                let Some(direct_table_id) = direct_table_id(|table| table.meter) else { return };
                let spec = Some(meter_spec(*bytes));
                self.message.direct_meters.push(config::DirectMeter { preamble, spec, direct_table_id });
            }
            ObjectKind::Register { size, element, .. } => {
                self.types(element);
                let (type_spec, size) = (types::spec(element), *size as i32);
                self.message.registers.push(config::Register { preamble, type_spec, size, index_type_name: None });
            }
            ObjectKind::Digest { element } => {
                self.types(element);
                self.message.digests.push(config::Digest { preamble, type_spec: types::spec(element) });
            }
            ObjectKind::Profile { has_selector, size } => {
                let users = ir.tables.iter().filter(|table| table.profile == Some(number));
                let group_size = object.annotations.iter().find(|given| &*given.name == "max_group_size");
                let group_size = group_size.and_then(|given| given.values.first()?.parse().ok()).unwrap_or(0);
                self.message.action_profiles.push(config::ActionProfile {
                    preamble,
                    table_ids: users.map(|table| self.ids.id(Kind::Table, &table.path)).collect(),
                    with_selector: *has_selector,
                    size: *size as i64,
                    max_group_size: group_size,
                    ..Default::default()
                });
            }
            ObjectKind::Checksum | ObjectKind::Hash(_) | ObjectKind::Random { .. } | ObjectKind::Other => return,
        }
        self.objects.insert(id, number);
    }

    fn value_set(&mut self, number: usize, set: &nicforge_flexnic::p4::ir::SetInfo) {
        use config::match_field::{Match, MatchType};
        let preamble = self.preamble(Kind::ValueSet, &set.path, &set.annotations);
        self.sets.insert(preamble.as_ref().map_or(0, |preamble| preamble.id), number);
        let names: Vec<String> = match &set.ty {
            Type::Struct(of) if of.fields.len() == set.widths.len() => {
                of.fields.iter().map(|field| field.name.to_string()).collect()
            }
            _ => vec![String::new(); set.widths.len()],
        };
        let fields = names.into_iter().zip(&set.widths).enumerate();
        let fields = fields.map(|(at, (name, width))| config::MatchField {
            id: at as u32 + 1,
            name,
            bitwidth: *width as i32,
            r#match: Some(Match::MatchType(MatchType::Exact as i32)),
            type_name: type_name(&set.ty),
            ..Default::default()
        });
        let fields = fields.collect();
        self.types(&set.ty);
        self.message.value_sets.push(config::ValueSet { preamble, r#match: fields, size: set.size as i32 });
    }

    fn controller_headers(&mut self, program: &Program) {
        for header in &program.ir().controller_headers {
            let Some(name) = controller_name(&header.annotations) else { continue };
            let mut metadata = Vec::new();
            let padding = |annotations: &Annotations| annotations.iter().any(|given| &*given.name == "padding");
            for (field, annotations) in header.ty.fields().iter().zip(&header.fields) {
                if padding(annotations) {
                    continue;
                }
                self.types(&field.ty);
                let width = field.ty.bits(|most| most).unwrap_or(0);
                metadata.push(config::controller_packet_metadata::Metadata {
                    id: given_id(annotations).unwrap_or(metadata.len() as u32 + 1),
                    name: field.name.to_string(),
                    annotations: shown(annotations),
                    bitwidth: sdn_width(&field.ty, width) as i32,
                    type_name: type_name(&field.ty),
                    ..Default::default()
                });
            }
            let id = self.ids.id(Kind::ControllerHeader, &header.ty.to_string());
            let preamble = self.preamble(Kind::ControllerHeader, &name, &header.annotations);
            let preamble = preamble.map(|preamble| config::Preamble { id, alias: name.clone(), ..preamble });
            self.message.controller_packet_metadata.push(config::ControllerPacketMetadata { preamble, metadata });
        }
    }
}

/// `packet_in` or `packet_out` of a `@controller_header`.
pub(crate) fn controller_name(annotations: &Annotations) -> Option<String> {
    let given = annotations.iter().find(|given| &*given.name == "controller_header")?;
    given.values.first().map(|name| name.to_string())
}

/// All parts that get an id.
fn parts(program: &Program) -> Vec<(Kind, String, Annotations)> {
    let ir = program.ir();
    let mut found: Vec<(Kind, String, Annotations)> = Vec::new();
    for table in &ir.tables {
        found.push((Kind::Table, table.path.to_string(), table.annotations.clone()));
        for action in &table.actions {
            let known = found.iter().any(|(kind, name, _)| *kind == Kind::Action && **name == *action.path);
            if !known {
                found.push((Kind::Action, action.path.to_string(), action.annotations.clone()));
            }
        }
    }
    for object in &ir.objects {
        if let Some(kind) = kind_of(&object.kind) {
            found.push((kind, object.path.to_string(), object.annotations.clone()));
        }
    }
    for set in &ir.sets {
        found.push((Kind::ValueSet, set.path.to_string(), set.annotations.clone()));
    }
    for header in &ir.controller_headers {
        // The id comes from the type, the name from the annotation.
        found.push((Kind::ControllerHeader, header.ty.to_string(), header.annotations.clone()));
    }
    found
}

fn kind_of(object: &ObjectKind) -> Option<Kind> {
    match object {
        ObjectKind::Counter { .. } => Some(Kind::Counter),
        ObjectKind::DirectCounter { .. } => Some(Kind::DirectCounter),
        ObjectKind::Meter { .. } => Some(Kind::Meter),
        ObjectKind::DirectMeter { .. } => Some(Kind::DirectMeter),
        ObjectKind::Register { .. } => Some(Kind::Register),
        ObjectKind::Digest { .. } => Some(Kind::Digest),
        ObjectKind::Profile { .. } => Some(Kind::ActionProfile),
        ObjectKind::Checksum | ObjectKind::Hash(_) | ObjectKind::Random { .. } | ObjectKind::Other => None,
    }
}

fn counter_spec(bytes: bool, packets: bool) -> config::CounterSpec {
    use config::counter_spec::Unit;
    let unit = match (bytes, packets) {
        (true, true) => Unit::Both,
        (true, false) => Unit::Bytes,
        _ => Unit::Packets,
    };
    config::CounterSpec { unit: unit as i32 }
}

fn meter_spec(bytes: bool) -> config::MeterSpec {
    use config::meter_spec::{Type, Unit};
    let unit = if bytes { Unit::Bytes } else { Unit::Packets };
    config::MeterSpec { unit: unit as i32, r#type: Type::TwoRateThreeColor as i32 }
}

fn is_hidden(annotations: &Annotations) -> bool {
    annotations.iter().any(|given| &*given.name == "hidden")
}

/// Annotations that the fields of P4Info do not say already.
fn shown(annotations: &Annotations) -> Vec<String> {
    let said = ["name", "id", "brief", "description"];
    let rest = annotations.iter().filter(|given| !said.contains(&&*given.name));
    rest.map(|given| given.text.to_string()).collect()
}

fn documentation(annotations: &Annotations) -> Option<config::Documentation> {
    let text = |name: &str| {
        let of = |given: &&Annotation| &*given.name == name;
        annotations.iter().find(of).and_then(|given| given.values.first()).map(|text| text.to_string())
    };
    let (brief, description) = (text("brief"), text("description"));
    (brief.is_some() || description.is_some()).then(|| config::Documentation {
        brief: brief.unwrap_or_default(),
        description: description.unwrap_or_default(),
    })
}
