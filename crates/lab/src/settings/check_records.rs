//! Whether records go with the connections that carry them.

use nicforge_options::{Finding, ensure};
use nicforge_stages::l5p::L5pOptions;

use super::Settings;
use crate::tas::message::STAMP_BYTES;
use crate::tas::options::{Carrier, RpcOptions, TasOptions};
use crate::tas::records::options::{AnswerFrom, LayerFive, NvmeOptions, RecordOptions, RecordsBy, TlsOptions};
use crate::tasnic::options::{Payload, TasnicOptions};

/// Bytes of a record that are not content, at most: a command capsule.
const OVERHEAD_MOST: u32 = 72;
/// The same of a record of TLS around it.
const OVERHEAD_OF_TLS: u32 = 22;

impl Settings {
    /// Whether records fit the rings, contexts the NIC's table, and requests their commands.
    pub(super) fn check_records(&self, rpc: &RpcOptions) -> Result<(), Finding> {
        let records: RecordOptions = self.read();
        let has_target = records.rpc_answer_from == AnswerFrom::Storage;
        let is_nvme = records.rpc_layer5.is_nvme();
        self.check_stacked(&records)?;
        if has_target {
            self.check_target(rpc, is_nvme)?;
        } else if records.rpc_layer5 == LayerFive::Plain {
            return Ok(());
        }
        self.check_records_of_tasnic(rpc, is_nvme)?;
        ensure(!is_nvme || rpc.rpc_bytes == STAMP_BYTES, &["rpc_bytes", "rpc_layer5"], || {
            let what = format!("a request of {} bytes is no command of NVMe", rpc.rpc_bytes);
            (what, format!("set rpc_bytes to {STAMP_BYTES}: the bytes of a command that are used"))
        })?;
        let content = if is_nvme || has_target {
            self.read::<NvmeOptions>().nvme_pdu_kib << 10
        } else {
            self.read::<TlsOptions>().tls_record_bytes
        };
        let content = content.min(rpc.rpc_bytes.max(rpc.rpc_answer_bytes.unwrap_or(0)));
        let around = content.div_ceil(self.read::<TlsOptions>().tls_record_bytes) * OVERHEAD_OF_TLS;
        let is_stacked = records.rpc_layer5 == LayerFive::NvmeTls || has_target && records.rpc_storage_tls;
        let largest = content + OVERHEAD_MOST + if is_stacked { around } else { 0 };
        let ring = self.read::<TasOptions>().tas_buffer_kib << 10;
        ensure(largest <= ring, &["tas_buffer_kib", "tls_record_bytes", "nvme_pdu_kib"], || {
            let what = format!("a record of {largest} bytes does not fit a connection's buffer of {ring}");
            (what, format!("set tas_buffer_kib to {} or more", (largest >> 10) + 1))
        })?;
        let groups = rpc.rpc_app_cores.max(self.read::<TasOptions>().tas_fast_cores);
        let connections = rpc.rpc_connections + usize::from(has_target);
        let (each, there) = (if is_stacked { 3 } else { 2 }, self.read::<L5pOptions>().l5p_contexts);
        let wanted = each * (groups * connections) as u64;
        ensure(wanted <= there, &["l5p_contexts", "rpc_connections"], || {
            let what =
                format!("{wanted} contexts, {each} for each connection that a core may have; the table has {there}");
            (what, format!("set l5p_contexts to {wanted} or more"))
        })
    }

    /// A NIC sees PDUs in records that it decrypts, and in no others.
    fn check_stacked(&self, records: &RecordOptions) -> Result<(), Finding> {
        let (tls, nvme): (TlsOptions, NvmeOptions) = (self.read(), self.read());
        let sees = |around: RecordsBy, within: RecordsBy| around.is_nic() || within == RecordsBy::Software;
        let clients = records.rpc_layer5 != LayerFive::NvmeTls || sees(tls.tls_clients, nvme.nvme_clients);
        let from_target = records.rpc_answer_from == AnswerFrom::Storage && records.rpc_storage_tls;
        let server = !from_target || sees(tls.tls_storage, nvme.nvme_server);
        ensure(clients && server, &["nvme_clients", "nvme_server", "tls_clients", "tls_storage"], || {
            let what = "a NIC does not see PDUs in records that a core decrypts".to_string();
            (what, "let the NIC decrypt, too: tls_clients = \"nic\", or tls_storage = \"nic\"".to_string())
        })
    }

    /// Which servers read from a target.
    fn check_target(&self, rpc: &RpcOptions, is_nvme: bool) -> Result<(), Finding> {
        ensure(!is_nvme, &["rpc_answer_from", "rpc_layer5"], || {
            let what = "a server that is a target itself has no other".to_string();
            (what, "set rpc_layer5 to \"plain\" or \"tls\", or rpc_answer_from to \"memory\"".to_string())
        })?;
        ensure(rpc.server() == Carrier::Linux, &["rpc_answer_from", "rpc_server"], || {
            let what = "only a server with a kernel on its cores has a target".to_string();
            (what, "set rpc_server to \"linux\" and leave rpc_free_server out".to_string())
        })
    }

    /// What a NIC that runs TCP does of records.
    fn check_records_of_tasnic(&self, rpc: &RpcOptions, is_nvme: bool) -> Result<(), Finding> {
        if !rpc.uses(Carrier::Tasnic) {
            return Ok(());
        }
        ensure(!is_nvme, &["rpc_layer5", "rpc_server", "rpc_clients"], || {
            let what = "TASNIC carries records of TLS only in the model".to_string();
            (what, "set rpc_layer5 to \"tls\", or let rpc_server and rpc_clients be \"linux\" or \"tas\"".to_string())
        })?;
        let memory: RecordOptions = self.read();
        ensure(memory.rpc_answer_from == AnswerFrom::Memory, &["rpc_answer_from", "rpc_server"], || {
            let what = "TASNIC sends out of its rings, not out of a page cache".to_string();
            (what, "set rpc_answer_from to \"memory\"".to_string())
        })?;
        let place = self.read::<TasnicOptions>().tasnic_payload;
        ensure(place == Payload::Host, &["tasnic_payload", "rpc_layer5"], || {
            let what = "records lie in each connection's own rings in host memory".to_string();
            (what, "set tasnic_payload to \"host\"".to_string())
        })
    }
}
