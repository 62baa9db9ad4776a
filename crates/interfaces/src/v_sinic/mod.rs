//! V-SINIC: a SINIC with a register set per virtual NIC (integrated NIC, sections 7.1 and A.2).

use crate::register_map::RegisterMap;
use crate::sinic::registers::{ROWS, SET_BYTES};

/// V-SINIC's map.
pub const MAP: RegisterMap = RegisterMap {
    name: "v_sinic",
    about: "Virtual SINIC: virtual NIC n, of up to 256, has its own registers where `virtual` says yes \
            (integrated NIC, chapter 7 and appendix A).",
    rows: ROWS,
    stride: Some(SET_BYTES),
};
