//! SINIC: a NIC without descriptors, whose FIFOs the CPU empties and fills by registers (integrated
//! NIC, section 6.2 and appendix A). Its parts serve V-SINIC too, which has several register sets.

pub mod registers;
