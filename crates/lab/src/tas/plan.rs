//! From settings to what a host's application and service are made from.

use std::rc::Rc;

use nicforge_apps::PortMap;
use nicforge_nic::stage::Chain;
use nicforge_nic::{PortId, registers};
use nicforge_platform::sim::SimDma;
use nicforge_platform::{Addr, AddressSpace, Sim};
use nicforge_stages::StageKind;
use nicforge_stages::l5p::L5pKind;
use nicforge_units::{BitRate, Cycles, Time};

use super::app::{Role, RpcPlan};
use super::build::HostPlan;
use super::drive::{Drive, SharedDrive};
use super::linux::LinuxOptions;
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
        RpcPlan {
            request: rpc.rpc_bytes,
            answer: rpc.rpc_answer_bytes.unwrap_or(rpc.rpc_bytes),
            in_flight: rpc.rpc_in_flight,
            requests: rpc.rpc_requests,
            work: self.cost(rpc.rpc_work_cycles),
            call: self.cost(if kernel { linux.linux_call_cycles } else { tas.tas_call_cycles }),
            entry: self.cost(if kernel { 0 } else { tas.tas_entry_cycles }),
            source,
            client_work: self.cost(rpc.rpc_client_work_cycles),
        }
    }

    /// The least time between two looks of clients that cost nothing.
    pub fn moderation(&self) -> Time {
        let us = self.settings.read::<RpcOptions>().rpc_client_moderation_us;
        if self.is_free { Time::from_seconds(us * 1e-6) } else { Time::ZERO }
    }

    /// Whether the link's faults meet frames that come to it.
    pub fn meets_faults(&self) -> bool {
        match self.settings.read::<RpcOptions>().rpc_link_faults {
            FaultsToward::Both => true,
            FaultsToward::Server => self.role == Role::Server,
            FaultsToward::Clients => self.role == Role::Client,
        }
    }

    /// Where messages that it sends come from.
    pub fn source(&self, space: &mut AddressSpace) -> Source {
        let (records, rpc): (RecordOptions, RpcOptions) = (self.settings.read(), self.settings.read());
        if self.role == Role::Client || records.rpc_answer_from == AnswerFrom::Memory {
            return Source::Memory;
        }
        let each = u64::from(rpc.rpc_answer_bytes.unwrap_or(rpc.rpc_bytes));
        let len = (records.rpc_files_mib << 20).max(each);
        Source::PageCache(Files { at: space.data(len + BEHIND_FILES, 4096), len, each })
    }

    /// Its flow-group `group`.
    pub fn service(&self, group: usize, buffers: Buffers) -> ServicePlan {
        let tas: TasOptions = self.settings.read();
        let seed = self.seed.wrapping_mul(2) + u64::from(self.role == Role::Server);
        let linux: LinuxOptions = self.settings.read();
        let kernel = self.carrier == Carrier::Linux;
        ServicePlan {
            // A core's connections are its application's, which knows no other group.
            group: if kernel { 0 } else { group },
            address: self.address(),
            config: self.tcp_config(),
            ring: tas.tas_buffer_kib << 10,
            connections: self.settings.read::<RpcOptions>().rpc_connections,
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
        let (tls, nvme): (TlsOptions, NvmeOptions) = (self.settings.read(), self.settings.read());
        let is_server = self.role == Role::Server;
        match self.settings.read::<RecordOptions>().rpc_layer5 {
            LayerFive::Plain => None,
            LayerFive::Tls => Some(if is_server { tls.tls_server } else { tls.tls_clients }),
            LayerFive::Nvme => Some(if is_server { RecordsBy::Software } else { nvme.nvme_clients }),
        }
    }

    /// Records of flow-group `group`, whose answers belong into `buffers`.
    pub fn records(&self, group: usize, buffers: Buffers) -> Option<RecordPlan> {
        let (tls, nvme): (TlsOptions, NvmeOptions) = (self.settings.read(), self.settings.read());
        let layer = self.settings.read::<RecordOptions>().rpc_layer5;
        let (is_nvme, by) = (layer == LayerFive::Nvme, self.records_by()?);
        let is_dependent = self.carrier == Carrier::Tasnic;
        // What a NIC that runs TCP does costs no core.
        let is_free = self.is_free || (is_dependent && by.is_nic());
        let each = |cycles: f64| if is_free { 0.0 } else { cycles };
        let costs = RecordCosts {
            record: self.cost(if is_nvme { nvme.nvme_pdu_cycles } else { tls.tls_record_cycles }),
            encrypt: each(tls.tls_encrypt_cycles),
            decrypt: each(tls.tls_decrypt_cycles),
            page: self.cost(if is_nvme { nvme.nvme_page_cycles } else { 0 }),
            digest: self.cost(nvme.nvme_digest_cycles),
            digest_byte: each(nvme.nvme_digest_byte_cycles),
            command: self.cost(if is_nvme { nvme.nvme_command_cycles } else { tls.tls_command_cycles }),
            buffer: self.cost(nvme.nvme_buffer_cycles),
        };
        let connections = self.settings.read::<RpcOptions>().rpc_connections as u32;
        Some(RecordPlan {
            layer,
            role: self.role,
            by,
            is_dependent,
            content_max: if is_nvme { nvme.nvme_pdu_kib << 10 } else { tls.tls_record_bytes },
            first_context: group as u32 * connections * 2,
            buffers,
            costs,
        })
    }

    /// Where answers of a client belong that the NIC puts there.
    pub fn buffers(&self, space: &mut AddressSpace) -> Buffers {
        let rpc: RpcOptions = self.settings.read();
        let (each, count) = (rpc.rpc_answer_bytes.unwrap_or(rpc.rpc_bytes), rpc.rpc_in_flight);
        let is_nvme = self.settings.read::<RecordOptions>().rpc_layer5 == LayerFive::Nvme;
        if self.role == Role::Server || !is_nvme {
            return Buffers { at: Addr(0), each, count };
        }
        let bytes = rpc.rpc_connections as u64 * u64::from(each) * u64::from(count);
        Buffers { at: space.data(bytes, 4096), each, count }
    }

    /// What a server's application reads, where it has a drive.
    pub fn drive(&self) -> Option<SharedDrive> {
        let records: RecordOptions = self.settings.read();
        let latency = Time::from_seconds(records.rpc_drive_us * 1e-6);
        let rate = records.rpc_drive_gbps.filter(|_| self.role == Role::Server)?;
        Some(Drive::new(BitRate::from_gbps(rate), latency))
    }

    /// Whether its NIC has stage `l5p`.
    fn is_offloaded(&self) -> bool {
        self.records_by().is_some_and(RecordsBy::is_nic)
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
