//! Options of records over connections.

use nicforge_options::{Allowed, choice, options};

choice! {
    /// What lies between messages and TCP.
    pub enum LayerFive {
        /// Nothing: messages are TCP's bytes.
        Plain = "plain",
        /// Records of TLS 1.3 with AES-128-GCM.
        Tls = "tls",
        /// PDUs of NVMe/TCP with data digests: requests are read commands, answers their data.
        Nvme = "nvme",
        /// The same PDUs in records of TLS.
        NvmeTls = "nvme_tls",
    }
}

choice! {
    /// Who encrypts and decrypts records.
    pub enum RecordsBy {
        /// The core that writes and reads them.
        Software = "software",
        /// The NIC. Data of the page cache is copied into records.
        Nic = "nic",
        /// The NIC. Data of the page cache stays where it is.
        NicZeroCopy = "nic_zero_copy",
        /// A NIC that costs nothing to drive: cores leave ciphers, digests and copies of payload out, and the work costs nobody anything.
        Emulated = "emulated",
    }
}

choice! {
    /// Where answers come from.
    pub enum AnswerFrom {
        /// The application writes them.
        Memory = "memory",
        /// Files in the page cache.
        PageCache = "page_cache",
        /// Files on a target behind NVMe/TCP, a third host that costs nothing; each is read before its answer leaves.
        Storage = "storage",
    }
}

options! {
    /// Records over the connections of RPCs.
    pub struct RecordOptions {
        /// What lies between messages and TCP.
        rpc_layer5: LayerFive = LayerFive::Plain, "", LayerFive::ALLOWED;
        /// Where the server's answers come from.
        rpc_answer_from: AnswerFrom = AnswerFrom::Memory, "", AnswerFrom::ALLOWED;
        /// Files in the page cache, all together; with a target, the memory that files are read into.
        rpc_files_mib: u64 = 128, "MiB", Allowed::Whole(1, 65536),
            source "autonomous offloads, nginx with everything in the page cache: 128 MiB of files";
        /// The server's drive, or its target's; answers wait for it.
        rpc_drive_gbps: Option<f64> = None, "Gbit/s", Allowed::Number(0.001, 10_000.0), default "no drive";
        /// Time that the drive adds to a read.
        rpc_drive_us: f64 = 10.0, "µs", Allowed::Number(0.0, 1e6), source "Intel product brief, Optane P4800X: 10 µs";
        /// Reads that each of the server's cores has at its target at a time.
        rpc_storage_depth: u32 = 128, "reads", Allowed::Whole(1, 1024), source "Linux, nvme-tcp: a queue of 128 commands for each core";
        /// What the server reads from its target comes over TLS.
        rpc_storage_tls: bool = false, "", Allowed::Flag;
        /// The server's own work for a read from its target.
        rpc_storage_work_cycles: u32 = 11700, "cycles", Allowed::Whole(0, 1_000_000), source "as fio's for a read, fitted to o-c5: block layer, page cache, waking";
    }
}

options! {
    /// NVMe/TCP over the connections of RPCs.
    pub struct NvmeOptions {
        /// Who checks digests and places data at the clients: the NIC, or a core that copies.
        nvme_clients: RecordsBy = RecordsBy::Software, "", RecordsBy::ALLOWED;
        /// The same for what a server reads from its target.
        nvme_server: RecordsBy = RecordsBy::Software, "", RecordsBy::ALLOWED;
        /// Data of a PDU at most.
        nvme_pdu_kib: u32 = 256, "KiB", Allowed::Whole(1, 1024);
        /// Instructions for a PDU beside those for its bytes.
        nvme_pdu_cycles: u32 = 1000, "cycles", Allowed::Whole(0, 1_000_000), source "estimate: as tls_record_cycles";
        /// Instructions for each 4 KiB of a read: block layer, page references.
        nvme_page_cycles: u32 = 800, "cycles", Allowed::Whole(0, 1_000_000), source "fitted to o-c5 and o-c6";
        /// A core's time for a digest, beside its bytes.
        nvme_digest_cycles: u32 = 1258, "cycles", Allowed::Whole(0, 1_000_000), source "o-c5 and o-c6: 2352 cycles for 4 KiB, 70 100 for 256 KiB";
        /// A core's time for a byte of a digest (CRC32C).
        nvme_digest_byte_cycles: f64 = 0.267, "cycles per byte", Allowed::Number(0.0, 1000.0), source "o-c5 and o-c6, as nvme_digest_cycles";
        /// Instructions of a driver for a special descriptor, or an answer to the NIC.
        nvme_command_cycles: u32 = 300, "cycles", Allowed::Whole(0, 1_000_000), source "estimate: as tls_command_cycles";
        /// Instructions to tell the NIC of a buffer before a request. The published offload was emulated without.
        nvme_buffer_cycles: u32 = 0, "cycles", Allowed::Whole(0, 1_000_000);
    }
}

options! {
    /// TLS over the connections of RPCs.
    pub struct TlsOptions {
        /// Who encrypts and decrypts the server's records.
        tls_server: RecordsBy = RecordsBy::Software, "", RecordsBy::ALLOWED;
        /// Who encrypts and decrypts the clients' records.
        tls_clients: RecordsBy = RecordsBy::Software, "", RecordsBy::ALLOWED;
        /// Who encrypts and decrypts what the server reads from its target.
        tls_storage: RecordsBy = RecordsBy::Software, "", RecordsBy::ALLOWED;
        /// Content of a record at most.
        tls_record_bytes: u32 = 16384, "bytes", Allowed::Whole(1, 16384), source "RFC 8446, section 5.1";
        /// Instructions for a record beside those for its bytes: kernel TLS, descriptors, page references.
        tls_record_cycles: u32 = 1000, "cycles", Allowed::Whole(0, 1_000_000), source "estimate; fitted to o-c1, o-c2";
        /// A core's time to encrypt a byte.
        tls_encrypt_cycles: f64 = 1.07, "cycles per byte", Allowed::Number(0.0, 1000.0), source "o-c1: AES-GCM of records that leave";
        /// A core's time to decrypt a byte.
        tls_decrypt_cycles: f64 = 1.34, "cycles per byte", Allowed::Number(0.0, 1000.0), source "o-c2: AES-GCM of records that come";
        /// Instructions of a driver for a special descriptor, or an answer to the NIC.
        tls_command_cycles: u32 = 300, "cycles", Allowed::Whole(0, 1_000_000), source "estimate: a descriptor of several cache lines";
    }
}

impl LayerFive {
    /// Whether messages are in PDUs of NVMe/TCP.
    pub fn is_nvme(self) -> bool {
        matches!(self, LayerFive::Nvme | LayerFive::NvmeTls)
    }

    /// Whether TCP carries records of TLS.
    pub fn is_tls(self) -> bool {
        matches!(self, LayerFive::Tls | LayerFive::NvmeTls)
    }
}

impl RecordsBy {
    /// Whether the NIC does it.
    pub fn is_nic(self) -> bool {
        matches!(self, RecordsBy::Nic | RecordsBy::NicZeroCopy)
    }
}
