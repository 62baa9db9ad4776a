//! From settings to what a host's application and service are made from.

use std::rc::Rc;

use nicforge_apps::PortMap;
use nicforge_nic::stage::Chain;
use nicforge_nic::{PortId, registers};
use nicforge_platform::sim::SimDma;
use nicforge_platform::{AddressSpace, Sim};
use nicforge_stages::StageKind;
use nicforge_stages::l5p::L5pKind;
use nicforge_units::{BitRate, Cycles, Time};

use super::app::{Role, RpcPlan};
use super::build::HostPlan;
use super::drive::{Drive, Reads, SharedDrive};
use super::linux::LinuxOptions;
use super::message::STAMP_BYTES;
use super::options::{Carrier, FaultsToward, RpcOptions, TasOptions};
use super::records::options::{AnswerFrom, LayerFive, NvmeOptions, RecordOptions, RecordsBy, TlsOptions};
use super::records::{Buffers, RecordCosts, RecordPlan};
use super::run::RunCosts;
use super::service::{BURST, Costs, ServicePlan};
use super::source::{Files, Source};
use crate::assembly::BuildError;
use crate::run::RunError;
use crate::run::stages::plan_of;

/// A record may reach behind its file's end: header and tag.
const BEHIND_FILES: u64 = 4096;
/// Frames that clients with moderated interrupts take at once: what Linux takes at most.
const MODERATED_BURST: usize = 64;
/// Registers of stage `l5p`, the only one, that say which memory it may reach.
const WINDOW: u32 = registers::STAGES + 4;

impl HostPlan<'_> {
    fn cost(&self, cycles: u32) -> Cycles {
        Cycles(if self.is_free { 0 } else { cycles.into() })
    }

    /// What its application does.
    pub fn rpcs(&self, source: Source) -> RpcPlan {
        let (rpc, tas): (RpcOptions, TasOptions) = (self.settings.read(), self.settings.read());
        let (kernel, linux): (bool, LinuxOptions) = (self.carrier == Carrier::Linux, self.settings.read());
        let records: RecordOptions = self.settings.read();
        RpcPlan {
            request: if self.is_target { STAMP_BYTES } else { rpc.rpc_bytes },
            answer: rpc.rpc_answer_bytes.unwrap_or(rpc.rpc_bytes),
            in_flight: rpc.rpc_in_flight,
            requests: rpc.rpc_requests,
            work: self.cost(rpc.rpc_work_cycles),
            call: self.cost(if kernel { linux.linux_call_cycles } else { tas.tas_call_cycles }),
            entry: self.cost(if kernel { 0 } else { tas.tas_entry_cycles }),
            source,
            client_work: self.cost(rpc.rpc_client_work_cycles),
            storage_work: self.cost(records.rpc_storage_work_cycles),
        }
    }

    /// The least time between two looks of clients that cost nothing.
    pub fn moderation(&self) -> Time {
        let us = self.settings.read::<RpcOptions>().rpc_client_moderation_us;
        if self.is_free && !self.is_target { Time::from_seconds(us * 1e-6) } else { Time::ZERO }
    }

    /// Whether the link's faults meet frames that come to it.
    pub fn meets_faults(&self) -> bool {
        match self.settings.read::<RpcOptions>().rpc_link_faults {
            FaultsToward::Both => true,
            FaultsToward::Server => self.role == Role::Server && !self.is_target,
            FaultsToward::Clients => self.role == Role::Client,
        }
    }

    /// Where messages that each of its applications sends come from.
    pub fn sources(&self, space: &mut AddressSpace, applications: usize) -> Vec<Source> {
        let (records, rpc): (RecordOptions, RpcOptions) = (self.settings.read(), self.settings.read());
        if self.role == Role::Client || self.is_target || records.rpc_answer_from == AnswerFrom::Memory {
            return vec![Source::Memory; applications];
        }
        let each = u64::from(rpc.rpc_answer_bytes.unwrap_or(rpc.rpc_bytes));
        let in_turn = self.has_target();
        let mut files = |bytes: u64| {
            let len = bytes.max(each);
            Source::PageCache(Files { at: space.data(len + BEHIND_FILES, 4096), len, each, in_turn })
        };
        let all = records.rpc_files_mib << 20;
        if in_turn {
            return (0..applications).map(|_| files(all / applications as u64)).collect();
        }
        vec![files(all); applications]
    }

    /// Whether it reads what it sends from a target.
    pub fn has_target(&self) -> bool {
        let from = self.settings.read::<RecordOptions>().rpc_answer_from;
        self.role == Role::Server && !self.is_target && from == AnswerFrom::Storage
    }

    /// Connections that a flow-group may have.
    fn connections(&self) -> usize {
        let rpc: RpcOptions = self.settings.read();
        if self.is_target { rpc.rpc_app_cores } else { rpc.rpc_connections + usize::from(self.has_target()) }
    }

    /// Its flow-group `group`.
    pub fn service(&self, group: usize, source: Source, buffers: Buffers) -> ServicePlan {
        let tas: TasOptions = self.settings.read();
        let seed = self.seed.wrapping_mul(2) + self.seed_number();
        let linux: LinuxOptions = self.settings.read();
        let kernel = self.carrier == Carrier::Linux;
        ServicePlan {
            // A core's connections are its application's, which knows no other group.
            group: if kernel { 0 } else { group },
            address: self.address(),
            config: self.tcp_config(),
            ring: tas.tas_buffer_kib << 10,
            connections: self.connections(),
            opening: self.settings.read::<RpcOptions>().rpc_opening.div_ceil(self.groups()),
            costs: if kernel { self.kernel_costs(&linux) } else { self.service_costs(&tas) },
            seed: seed ^ (group as u64) << 48,
            burst: match (kernel, self.moderation() > Time::ZERO) {
                (true, _) => linux.linux_burst,
                (false, true) => MODERATED_BURST,
                (false, false) => BURST,
            },
            // A host that costs nothing sends as the other one expects it.
            turn_bytes: if kernel || self.is_free { linux.linux_merge_kib << 10 } else { 0 },
            gathers: kernel && linux.linux_gathers,
            records: self.records(group, buffers),
            storage: self.storage(group, source),
        }
    }

    fn kernel_costs(&self, linux: &LinuxOptions) -> Costs {
        let run = |further| RunCosts {
            first: self.cost(linux.linux_segment_cycles),
            further: self.cost(further),
            bytes_max: linux.linux_merge_kib << 10,
        };
        Costs { coming: run(linux.linux_merged_cycles), going: run(linux.linux_cut_cycles), entry: Cycles(0) }
    }

    fn service_costs(&self, tas: &TasOptions) -> Costs {
        let segment = self.cost(tas.tas_segment_cycles);
        let alone = RunCosts { first: segment, further: segment, bytes_max: 0 };
        Costs { coming: alone, going: alone, entry: self.cost(tas.tas_entry_cycles) }
    }

    /// Who works on this host's records, if there are any.
    fn records_by(&self) -> Option<RecordsBy> {
        if self.is_target {
            return Some(RecordsBy::Software);
        }
        let (tls, nvme): (TlsOptions, NvmeOptions) = (self.settings.read(), self.settings.read());
        let is_server = self.role == Role::Server;
        match self.settings.read::<RecordOptions>().rpc_layer5 {
            LayerFive::Plain => None,
            LayerFive::Tls => Some(if is_server { tls.tls_server } else { tls.tls_clients }),
            LayerFive::Nvme | LayerFive::NvmeTls => {
                Some(if is_server { RecordsBy::Software } else { nvme.nvme_clients })
            }
        }
    }

    /// Records of flow-group `group`, whose answers belong into `buffers`.
    pub fn records(&self, group: usize, buffers: Buffers) -> Option<RecordPlan> {
        let layer = self.settings.read::<RecordOptions>().rpc_layer5;
        let layer = if self.is_target { self.storage_layer() } else { layer };
        let by = self.records_by()?;
        Some(self.record_plan(group, (layer, self.role, by), buffers))
    }

    fn storage_layer(&self) -> LayerFive {
        let is_over_tls = self.settings.read::<RecordOptions>().rpc_storage_tls;
        if is_over_tls { LayerFive::NvmeTls } else { LayerFive::Nvme }
    }

    /// Who encrypts and decrypts around PDUs at this end of a connection.
    fn around_by(&self, role: Role) -> RecordsBy {
        let tls: TlsOptions = self.settings.read();
        match (self.role, role) {
            _ if self.is_target => RecordsBy::Software,
            (Role::Server, Role::Client) => tls.tls_storage,
            (Role::Server, Role::Server) => tls.tls_server,
            (Role::Client, _) => tls.tls_clients,
        }
    }

    /// Records of what flow-group `group` reads from its target, into the files of `source`.
    fn storage(&self, group: usize, source: Source) -> Option<RecordPlan> {
        let by = self.settings.read::<NvmeOptions>().nvme_server;
        let Source::PageCache(files) = source else { return None };
        let (each, count) = (files.each as u32, files.count() as u32);
        let buffers = Buffers { at: files.at, each, count, is_shared: true };
        let plan = || self.record_plan(group, (self.storage_layer(), Role::Client, by), buffers);
        self.has_target().then(plan)
    }

    fn record_plan(
        &self,
        group: usize,
        (layer, role, by): (LayerFive, Role, RecordsBy),
        buffers: Buffers,
    ) -> RecordPlan {
        let (tls, nvme): (TlsOptions, NvmeOptions) = (self.settings.read(), self.settings.read());
        let is_nvme = layer.is_nvme();
        let is_dependent = self.carrier == Carrier::Tasnic;
        // What a NIC that runs TCP does costs no core.
        let is_free = self.is_free || (is_dependent && by.is_nic());
        let is_emulated = by == RecordsBy::Emulated;
        let each = |cycles: f64| if is_free || is_emulated { 0.0 } else { cycles };
        let costs = RecordCosts {
            record: self.cost(if is_nvme { nvme.nvme_pdu_cycles } else { tls.tls_record_cycles }),
            around: self.cost(tls.tls_record_cycles),
            encrypt: each(tls.tls_encrypt_cycles),
            decrypt: each(tls.tls_decrypt_cycles),
            page: self.cost(if is_nvme { nvme.nvme_page_cycles } else { 0 }),
            digest: self.cost(if is_emulated { 0 } else { nvme.nvme_digest_cycles }),
            digest_byte: each(nvme.nvme_digest_byte_cycles),
            command: self.cost(if is_nvme { nvme.nvme_command_cycles } else { tls.tls_command_cycles }),
            buffer: self.cost(nvme.nvme_buffer_cycles),
        };
        RecordPlan {
            layer,
            role,
            by,
            around_by: self.around_by(role),
            around_max: tls.tls_record_bytes,
            first_within: ((self.groups() * 2 + group) * self.connections()) as u32,
            is_dependent,
            content_max: if is_nvme { nvme.nvme_pdu_kib << 10 } else { tls.tls_record_bytes },
            first_context: (group * self.connections() * 2) as u32,
            buffers,
            costs,
        }
    }

    /// Where answers of a client belong that the NIC puts there.
    pub fn buffers(&self, space: &mut AddressSpace) -> Buffers {
        let rpc: RpcOptions = self.settings.read();
        let (each, count) = (rpc.rpc_answer_bytes.unwrap_or(rpc.rpc_bytes), rpc.rpc_in_flight);
        let is_nvme = self.settings.read::<RecordOptions>().rpc_layer5.is_nvme();
        if self.role == Role::Server || !is_nvme {
            return Buffers::NONE;
        }
        let bytes = rpc.rpc_connections as u64 * u64::from(each) * u64::from(count);
        Buffers { at: space.data(bytes, 4096), each, count, is_shared: false }
    }

    /// The drive in a host that answers, if there is one.
    pub fn drive(&self) -> Option<SharedDrive> {
        let records: RecordOptions = self.settings.read();
        let latency = Time::from_seconds(records.rpc_drive_us * 1e-6);
        let rate = records.rpc_drive_gbps.filter(|_| self.role == Role::Server && !self.has_target())?;
        Some(Drive::new(BitRate::from_gbps(rate), latency))
    }

    /// How each of its applications reads what it answers with.
    pub fn reads(&self, drive: Option<&SharedDrive>) -> Option<Reads> {
        if self.has_target() {
            return Some(Reads::of_target(self.settings.read::<RecordOptions>().rpc_storage_depth));
        }
        drive.cloned().map(Reads::of_drive)
    }

    /// Whether its NIC has stage `l5p`.
    fn is_offloaded(&self) -> bool {
        let layer = self.settings.read::<RecordOptions>().rpc_layer5;
        let around = |layer, role| layer == LayerFive::NvmeTls && self.around_by(role).is_nic();
        let of_target =
            self.settings.read::<NvmeOptions>().nvme_server.is_nic() || around(self.storage_layer(), Role::Client);
        let is_own = self.records_by().is_some_and(RecordsBy::is_nic) || around(layer, self.role);
        self.has_target() && of_target || is_own && !self.is_target
    }

    /// The stages of its NIC.
    pub fn chain(&self, space: &mut AddressSpace) -> Result<Chain<SimDma>, RunError> {
        let mut chain = Chain::new(PortId(0));
        if self.is_offloaded() {
            let plan = plan_of(self.settings, &PortMap::one_armed(1), 0, self.hardware.cores, Rc::new(()));
            let built = L5pKind::build::<Sim>(&self.settings.read(), &plan, space).map_err(BuildError::from)?;
            chain.push(built.stage);
        }
        Ok(chain)
    }

    /// Register writes that let the NIC read records again.
    pub fn offload_window(&self, space: &AddressSpace) -> Vec<(u32, u64)> {
        if self.is_offloaded() { vec![(WINDOW, 0), (WINDOW + 1, space.end())] } else { Vec::new() }
    }
}
